"""What is known of failures: rules as data, the layers they blame, and how rules are applied to what was seen.

In: hits and facts, from `diagnose` (logs) and `doctor` (machines).  Out: findings, for `verdict`.
"""

from jumar.tools.knowledge.apply import Finding, Findings, apply_rules
from jumar.tools.knowledge.blanks import BLANK, COMMON, left_blank
from jumar.tools.knowledge.facts import Evidence, Fact, Hit, Moment
from jumar.tools.knowledge.kept import kept
from jumar.tools.knowledge.likeness import Like, Likeness
from jumar.tools.knowledge.load import load_rules
from jumar.tools.knowledge.rule import (
    CODE,
    FACT,
    LANGUAGES,
    TIERS,
    Layer,
    Rule,
    Text,
    as_written,
    compiled,
    fill,
    layers,
    regex_options,
)

__all__ = [
    "BLANK", "CODE", "COMMON", "FACT", "LANGUAGES", "TIERS",
    "Evidence", "Fact", "Finding", "Findings", "Hit", "Layer", "Like", "Likeness", "Moment", "Rule", "Text",
    "apply_rules", "as_written", "compiled", "fill", "kept", "layers", "left_blank", "load_rules", "regex_options",
]  # fmt: skip
