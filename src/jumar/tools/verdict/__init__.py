"""Verdicts, and how they are shown: terminal, JSON, HTML; in English and Chinese.

In: findings, codes, evidence (diagnose, doctor).  Out: text for people and programs.
"""

from jumar.tools.verdict.show import show
from jumar.tools.verdict.verdict import CONFIDENCE, Decoded, Verdict

__all__ = ["CONFIDENCE", "Decoded", "Verdict", "show"]
