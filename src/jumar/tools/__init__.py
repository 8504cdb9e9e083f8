"""The top floor: what reads the rooms below and tells people: the command line, `enable` and its report."""
