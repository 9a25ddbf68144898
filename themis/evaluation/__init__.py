"""From a record to scores: extractors, metrics, strategies and the pipeline that joins them."""
