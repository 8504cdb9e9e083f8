"""Runs every golden file: `# pass:` on the upper graph must give the lower one, and both must compute the same.

`pytest --update-golden` rewrites the lower halves; read the diff as carefully as code.
"""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from jumar.compiler.passes import PASSES
from jumar.ir import Sample, interpret, parse_graph, print_graph

FOLDER = Path(__file__).parent / "passes"
NARROWING = ("set_precision", "select")  # passes that may compute f32 in 16 bits
FILES = sorted(FOLDER.glob("*.graph"))
HEAD = re.compile(r"# pass: (\w+)(?:\{(.*)\})?\n# why: (.+)\n")


def make_pass(name, options):
    call = ast.parse(f"f({options or ''})", mode="eval").body
    return PASSES[name](**{k.arg: ast.literal_eval(k.value) for k in call.keywords})


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_pass_gives_the_lower_graph_and_both_compute_the_same(path, request):
    text = path.read_text()
    head = HEAD.match(text)
    assert head, f"{path.name} must begin with `# pass:` and `# why:`"
    upper, _, lower = text[head.end() :].partition("---\n")
    before = parse_graph(upper)
    after = make_pass(head[1], head[2])(before)
    if request.config.getoption("--update-golden"):
        path.write_text(f"{head[0]}{upper.rstrip()}\n---\n{print_graph(after)}")
    else:
        assert print_graph(after) == print_graph(parse_graph(lower))
    arrays = Sample(tuple(p.type for p in before.params), low=0.05).arrays(seed=1)
    for expected, actual in zip(interpret(before, arrays), interpret(after, arrays), strict=True):
        tolerance = 1e-2 if expected.dtype.itemsize == 2 or head[1] in NARROWING else 1e-4
        np.testing.assert_allclose(expected.astype(np.float64), actual.astype(np.float64), rtol=tolerance, atol=tolerance)


def test_every_golden_file_says_why():
    assert len(FILES) > 80
    assert all(HEAD.match(p.read_text()) for p in FILES)


def test_every_rule_has_a_golden_file():
    from jumar.compiler.passes.canonicalize import ALGEBRA, MOVEMENT
    from jumar.compiler.passes.fold_scale import RULES
    from jumar.compiler.passes.quantize import CODES, DEAR_TABLES, TABLES
    from jumar.compiler.passes.recognize import ATTENTION, NAMES

    names = {
        f.__name__
        for table in (ALGEBRA, MOVEMENT, CODES, TABLES, DEAR_TABLES, NAMES, ATTENTION, RULES)
        for rules in table.values()
        for f in rules
    }
    covered = {p.stem.split("-")[0] for p in FILES}
    assert sorted(names - covered) == []
