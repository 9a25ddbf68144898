"""The door of the memory benchmark: `python run_benchmark.py -c CONFIGURATION -a AGENT` is `themis memory run`."""

import sys

from themis.cli import main

if __name__ == "__main__":
    main(["memory", "run", *sys.argv[1:]])
