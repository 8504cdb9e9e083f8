"""A verdict as one HTML page that needs nothing else; every line of a log is escaped.

In: a `Verdict`.  Out: the text of the page, from the template beside this file.
"""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from jumar.tools.knowledge import layers
from jumar.tools.verdict.verdict import Verdict
from jumar.tools.verdict.words import safe, word


def page(verdict: Verdict, lang: str) -> str:
    """The page in one language."""
    jinja = Environment(
        loader=PackageLoader("jumar.tools.verdict", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    jinja.filters["safe_line"] = safe
    return jinja.get_template("verdict.html.j2").render(v=verdict, lang=lang, w=lambda key: word(key, lang), layers=layers())
