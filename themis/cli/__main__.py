"""`python -m themis.cli` is the command `themis`."""

from themis.cli import main

if __name__ == "__main__":
    main()
