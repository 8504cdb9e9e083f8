"""Verdicts, and how they are shown: terminal, JSON, HTML; in English and Chinese.

In: findings, codes, evidence (diagnose, doctor).  Out: text for people and programs.
"""

from jumar.tools.verdict.show import show
from jumar.tools.verdict.verdict import CONFIDENCE, Component, Decoded, Level, Verdict

__all__ = ["CONFIDENCE", "Component", "Decoded", "Level", "Verdict", "show"]
