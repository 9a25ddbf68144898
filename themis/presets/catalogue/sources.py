"""Words that entries of the catalogue share about where rows come from."""

from __future__ import annotations

SEE_PAGE = "see the dataset's page"
CONVERTED = "refs/convert/parquet"  # the Hub's own conversion of datasets that exist as scripts only
