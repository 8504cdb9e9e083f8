"""The doctor's answers to field cases: `python tests/field/answer_cases.py CASES_DIR OUT.jsonl [--without-seen]`.

In: *.json with `id`, `input` and, maybe, `environment`: nothing else of a case is read.  Out: a line {"id", "layer", "text", "evidence"} each, made by
what `jumar diagnose` runs.  --without-seen: for each case the rules that were written with it in view are switched off.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

from jumar.tools.diagnose import Diagnosis
from jumar.tools.diagnose.diagnose import diagnose_text, with_rules
from jumar.tools.knowledge import load_rules
from jumar.tools.verdict import Verdict


def answer(case: dict[str, Any], rules: Diagnosis) -> dict[str, Any]:
    """What the doctor says to one case."""
    verdict = diagnose_text(case["input"], str(case.get("environment") or ""), rules)
    first = verdict.findings[0] if verdict.findings else None
    evidence = [e.text for e in (first.evidence if first else ())] or ([verdict.first_error.text] if verdict.first_error else [])
    return {"id": case["id"], "layer": verdict.layer, "text": text_of(verdict), "evidence": evidence}


def text_of(verdict: Verdict) -> str:
    """Cause, fix and commands of the verdict in English, then the decoded codes."""
    said = []
    if verdict.findings:
        text = verdict.findings[0].text("en")
        said += [text.what, *text.fix, *verdict.findings[0].run()]
    said += [f"{d.text}: {d.codes[0].symbol} {d.codes[0].en}" for d in verdict.codes if d.codes]
    return " ".join(said)


@cache
def _without(case_id: str) -> Diagnosis:
    return with_rules(tuple(rule for rule in load_rules() if case_id not in rule.seen))


def main(cases: Path, out: Path, without_seen: bool) -> None:
    everything = with_rules(load_rules())
    written_for = {case for rule in everything.rules for case in rule.seen}
    with out.open("w", encoding="utf-8") as stream:
        for file in sorted(cases.glob("*.json")):
            case = json.loads(file.read_text(encoding="utf-8"))
            rules = _without(case["id"]) if without_seen and case["id"] in written_for else everything
            stream.write(json.dumps(answer(case, rules), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--without-seen"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    main(Path(arguments[0]), Path(arguments[1]), "--without-seen" in sys.argv)
