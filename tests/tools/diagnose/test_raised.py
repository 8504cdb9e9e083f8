"""A frame that proves a finding is shown with the exception of its traceback."""

from __future__ import annotations

import pytest

from jumar.tools.diagnose import diagnose_text

TRACEBACK = """Traceback (most recent call last):
  File "pretrain.py", line 200, in <module>
    main()
  File "data.py", line 33, in __getitem__
    return self.table[key]
KeyError: 'answer'"""


@pytest.mark.parametrize("before", ["", "[rank3]: ", "[default5]:[rank5]: "])
def test_a_frame_is_shown_with_the_exception_of_its_own_traceback(before: str) -> None:
    other = "[rank0]: RuntimeError: another one's\n"
    lines = [before + line for line in TRACEBACK.splitlines()]
    text = "\n".join([*lines[:5], other.strip(), lines[5]]) if before else TRACEBACK
    found = diagnose_text(text).findings[0]
    assert found.rule.cause == "user_code_in_dataset_raised"
    assert [line.text.removeprefix(before).strip() for line in found.evidence][:2] == [
        'File "data.py", line 33, in __getitem__',
        "KeyError: 'answer'",
    ]


def test_a_frame_without_an_exception_stands_alone() -> None:
    found = diagnose_text(TRACEBACK.rpartition("\n")[0]).findings[0]
    assert [line.text.strip() for line in found.evidence] == ['File "data.py", line 33, in __getitem__']
