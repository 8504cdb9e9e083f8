"""`python -m jumar.tools` is `jumar`."""

from jumar.tools.cli import main

main()
