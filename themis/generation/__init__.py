"""From a row to a record: templates, attempts, the engine that makes the calls, providers."""
