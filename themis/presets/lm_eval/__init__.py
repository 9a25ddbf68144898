"""lm-eval's tasks on this engine: its prompts, shots, filters, metrics and groups; our calls, store, resume and statistics."""
