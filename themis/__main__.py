"""`python -m themis` is the command `themis`."""

from themis.cli import main

if __name__ == "__main__":
    main()
