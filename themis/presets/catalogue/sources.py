"""What entries of the catalogue share: words about where rows come from, and budgets of tokens."""

from __future__ import annotations

from themis.core.entities import SamplingConfig

SEE_PAGE = "see the dataset's page"
CONVERTED = "refs/convert/parquet"  # the Hub's own conversion of datasets that exist as scripts only

# Room for a short chain of thought, also of a model that thinks before it answers.
SHORT = SamplingConfig(max_tokens=8_192)
# Room for a long one, as reports on reasoning models give it.
REASONING = SamplingConfig(max_tokens=32_768)
# The same, drawn: of a set so small that one draw of each problem says little.
DRAWN = SamplingConfig(temperature=0.6, top_p=0.95, max_tokens=32_768)
DRAWN_SOURCE = "after DeepSeek-AI 2025, arXiv:2501.12948, with fewer attempts"
