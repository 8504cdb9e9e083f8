"""`python -m jumar.tools` is `jumar`."""

try:
    from jumar.tools.cli import main

    main()
except KeyboardInterrupt:  # while Python itself was starting
    raise SystemExit(130) from None
