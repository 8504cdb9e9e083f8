"""Jupyter: `%load_ext jumar` makes `import mindspore` give Jumar; `%%jumar` runs a cell and says what was captured and compiled.

In: IPython's shell.  Out: the alias and a magic.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from jumar.base import recording
from jumar.tools.alias import as_mindspore
from jumar.tools.run_report import Report, document, report_text


def load_ipython_extension(shell: Any) -> None:
    """What IPython calls at `%load_ext jumar`."""
    as_mindspore()

    def jumar(line: str, cell: str | None = None) -> None:
        """Runs the line or cell, then says what was captured and compiled."""
        begun_s = time.perf_counter()
        with recording() as record:
            shell.run_cell(line if cell is None else cell)
        sys.stderr.write(report_text(document(Report("this cell", record, time.perf_counter() - begun_s))) + "\n")

    shell.register_magic_function(jumar, "line_cell", "jumar")
