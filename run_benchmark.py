"""The door of the memory benchmark: `python run_benchmark.py -c CONFIGURATION -a AGENT` is `themis memory run`."""

import sys

try:
    import themis.cli.memory
except ModuleNotFoundError as error:
    sys.exit(
        f"Error: {sys.executable} has no package {error.name!r}, which Themis needs; run `make install`, then "
        ".venv/bin/python run_benchmark.py with the same options"
    )

if __name__ == "__main__":
    themis.cli.main(["memory", "run", *sys.argv[1:]])
