"""`python -m jumar`: the command line, where its program is not on the path."""

from jumar.tools.cli import main

if __name__ == "__main__":
    main()
