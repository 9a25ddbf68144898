"""One run from start to report: its plan, its page (`run`), manifest, cost, export and sharing."""
