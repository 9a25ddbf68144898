"""Other benchmarks' data as memory tests: the user supplies the file, `data_location` names it."""
