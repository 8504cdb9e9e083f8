"""Runs cases named on standard input, one JSON line for each on standard output; a crash ends only this process."""

from __future__ import annotations

import json
import resource
import sys
import warnings
from typing import Any

from tests.conformance.cases import compare, load_case, reasons

MEMORY = 6 << 30


def run_case(name: str, target: str) -> dict[str, Any]:
    import jumar
    from jumar.base import StackError

    case = load_case(name)
    reason = reasons().get(name, "")
    try:
        model = jumar.load(case.model, target=target)
        for inputs, expected in case.data():
            feeds = {p.name: v for p, v in zip(model.inputs, inputs, strict=False)}
            got = model.run(None, feeds)
            if len(got) != len(expected):
                return {"name": name, "status": "failed", "why": f"{len(got)} outputs instead of {len(expected)}"}
            for port, e, g in zip(model.outputs, expected, got, strict=True):
                why = compare(e, g, case.rtol, case.atol)
                if why and reason and not why.startswith(("shape", "dtype")):
                    return {"name": name, "status": "unsupported", "why": reason}
                if why:
                    return {"name": name, "status": "failed", "why": f"{port.name}: {why}"}
    except StackError as error:
        status = "unsupported" if error.code in ("op-unsupported", "unsupported") else "failed"
        return {"name": name, "status": status, "why": reason or _reason(error), "code": error.code}
    except Exception as error:
        return {"name": name, "status": "failed", "why": f"{type(error).__name__}: {error}"[:400], "code": "exception"}
    return {"name": name, "status": "passed", "why": ""}


def _reason(error: Any) -> str:
    if error.code == "op-unsupported":
        return "; ".join(line.strip().split(" at ")[0] for line in error.what.splitlines()[1:])
    return f"[{error.layer}] {error.what.removeprefix('test_').partition(': ')[2] or error.what}"[:300] + (
        f" ({error.code})" if error.code else ""
    )


def main() -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    target = sys.argv[1]
    for line in sys.stdin:
        name = line.strip()
        print(json.dumps(run_case(name, target)), flush=True)


if __name__ == "__main__":
    main()
