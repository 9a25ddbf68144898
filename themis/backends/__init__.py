"""Where a run executes and where it is stored, under the names of the tutorial."""
