"""The doctor's answers to field cases: `python tests/field/answer_cases.py CASES_DIR OUT.jsonl [--cross-check]`.

In: *.json with `id`, `input` and, maybe, `environment`: nothing else of a case is read.  Out: a line {"id", "layer", "text", "evidence"} each, made by
what `jumar diagnose` runs.  --cross-check: five folds; for the cases of one, every rule is switched off that was written with one of them in view.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jumar.tools.diagnose import Diagnosis
from jumar.tools.diagnose.diagnose import diagnose_text, with_rules
from jumar.tools.knowledge import load_rules
from jumar.tools.verdict import Verdict

FOLDS = 5


def answer(case: dict[str, Any], rules: Diagnosis) -> dict[str, Any]:
    """What the doctor says to one case."""
    verdict = diagnose_text(case["input"], str(case.get("environment") or ""), rules)
    first = verdict.told
    evidence = [e.text for e in (first.evidence if first else ())] or ([verdict.first_error.text] if verdict.first_error else [])
    return {"id": case["id"], "layer": verdict.layer, "text": text_of(verdict), "evidence": evidence}


def text_of(verdict: Verdict) -> str:
    """What the terminal says in English: cause, fix, commands, what else was found, the decoded codes."""
    said = []
    if verdict.told:
        text = verdict.told.text("en")
        said += [text.what, *text.fix, *verdict.told.run()]
    said += [finding.what("en") for finding in verdict.findings[1:3]]
    said += [f"{d.text}: {d.codes[0].symbol} {d.codes[0].en}" for d in verdict.codes if d.codes]
    return " ".join(said)


def main(cases: Path, out: Path, cross_check: bool) -> None:
    rules = load_rules()
    files = sorted(cases.glob("*.json"))
    folds = [files[fold::FOLDS] for fold in range(FOLDS)] if cross_check else [files]
    answers = []
    for fold in folds:
        away = {file.stem for file in fold} if cross_check else set()
        ready = with_rules(tuple(rule for rule in rules if not away & set(rule.seen)))
        answers += [answer(json.loads(file.read_text(encoding="utf-8")), ready) for file in fold]
    answers.sort(key=lambda a: str(a["id"]))
    out.write_text("".join(json.dumps(a, ensure_ascii=False) + "\n" for a in answers), encoding="utf-8")


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--cross-check"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    main(Path(arguments[0]), Path(arguments[1]), "--cross-check" in sys.argv)
