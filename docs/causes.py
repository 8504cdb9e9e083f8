"""The pages of what is known of failures: one a layer, and one for none of them, in English and Chinese, made of the rules.

In: `jumar.tools.knowledge`.  Out: docs/field/causes/*.md, written by docs/generate.py.
"""

from __future__ import annotations

import re
from pathlib import Path

from jumar.tools.knowledge import LANGUAGES, Layer, Rule, fill, layers, load_rules

FOLDER = Path(__file__).resolve().parent / "field" / "causes"
_NONE = Layer(  # of the rules with layer = ""
    "none",
    {"en": "none of the machine's layers", "zh": "不属于任何一层"},
    {
        "en": "The text is of another software, so no layer of an Ascend machine is at fault.",
        "zh": "文本来自其他软件，昇腾机器的各层都没有问题。",
    },
)
_TIER = {"cause": "the text names the cause", "symptom": "probable cause", "hint": "only the layer is likely"}


def pages(note: str) -> dict[Path, str]:
    """Every page's text by its file."""
    rules = load_rules()
    found = {FOLDER / f"{layer.name}.md": _page(layer, of, note) for layer, of in _by_layer(rules)}
    return {**found, FOLDER / "index.md": _index(rules, note)}


def _by_layer(rules: tuple[Rule, ...]) -> list[tuple[Layer, list[Rule]]]:
    """The rules of each layer, and last those of none."""
    return [(layer, [r for r in rules if r.layer == name]) for name, layer in (*layers().items(), ("", _NONE))]


def _index(rules: tuple[Rule, ...], note: str) -> str:
    lines = ["# What is known of failures", "", note.strip(), ""]
    lines.append(
        f"{len(rules)} kinds of failure, by the layer at fault: where the fault is, not where it shows. `jumar diagnose` finds them in logs."
    )
    lines += ["", "| layer | | kinds |", "|---|---|---|"]
    for layer, of in _by_layer(rules):
        lines.append(f"| [{layer.title['en']}]({layer.name}.md) | {layer.title['zh']} | {len(of)} |")
    return "\n".join(lines) + "\n"


def _page(layer: Layer, rules: list[Rule], note: str) -> str:
    lines = [f"# {layer.title['en']} · {layer.title['zh']}", "", note.strip(), ""]
    lines += [f"{plain(layer.next['en'])}", "", f"{plain(layer.next['zh'])}", ""]
    for rule in sorted(rules, key=lambda r: ("cause", "symptom", "hint").index(r.tier)):
        lines += [f"## {rule.name}", "", f"`{rule.cause}` · {_TIER[rule.tier]}", ""]
        for lang in LANGUAGES:
            text = rule.texts[lang].filled({})
            lines += [plain(text.what), "", *(f"{number}. {plain(step)}" for number, step in enumerate(text.fix, 1)), ""]
            if text.next:
                lines += [plain(text.next), ""]
        if rule.run:
            lines += ["```bash", *(fill(command, {}) for command in rule.run), "```", ""]
        lines += [f"Source: {plain(rule.source)}", ""]
    return "\n".join(lines).rstrip() + "\n"


def plain(text: str) -> str:
    """A text of a rule as Markdown that means itself: code in backticks stays, all else is escaped.

    >>> plain("set <dir> or `a<b>` to x_y*")
    'set \\\\<dir\\\\> or `a<b>` to x\\\\_y\\\\*'
    """
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") and len(part) > 1 else re.sub(r"([\\<>*_|\[\]#`~])", r"\\\1", part) for part in parts)
