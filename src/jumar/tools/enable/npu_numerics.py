"""What a chip's arithmetic does to a model, as text for the terminal.

In: `Findings` of the compiler.  Out: lines: the outputs, the first overflow, the nodes that lose most, what to keep in fp32, advice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jumar.compiler import Candidate, Findings, NodeNumerics, OutputNumerics
from jumar.tools.enable.units import plural

SHOWN = 6  # names of nodes in a line


def numerics_lines(findings: Findings, *, most: int = 8) -> list[str]:
    """The findings, a line each; the first is the verdict.   most: nodes that are listed"""
    lines = [f"{findings.chip} ({findings.mode}): {findings.summary}"]
    lines += [output_text(o) for o in findings.outputs[:most]]
    if len(findings.outputs) > most:
        lines.append(
            f"and {len(findings.outputs) - most} more outputs, none further off than {error_text(_worst(findings.outputs[most:]))}"
        )
    over = [n for n in findings.nodes if n.overflows]
    if len(over) > 1:
        lines.append(f"{len(over)} nodes leave the range: {', '.join(n.label for n in over[:most])}{' ...' if len(over) > most else ''}")
    worst = findings.worst[:most]
    if worst:
        wide = max(len(n.label) for n in worst)
        lines.append(f"{'nodes that lose most':{wide}}  type  largest  of range  arises here  in all  times its inputs'")
        lines += [node_text(n, wide) for n in worst]
    untried = all(c.after is None for c in findings.candidates)
    lines += [candidate_text(c) for c in findings.candidates if c.helps or untried]
    lines += [f"- {line}" for line in findings.advice]
    return lines


def output_text(o: OutputNumerics) -> str:
    """One output: how far off, and whether its decisions stay."""
    if o.wrong:
        return f"output {o.name}: {o.wrong} elements differ"
    if o.lost:
        return f"output {o.name}: not one of its {plural(o.size, 'element')} is finite"
    if o.agreement is None and not o.error and not o.broken:
        return f"output {o.name}: the same"
    broken = f", {o.broken} elements are not finite" if o.broken else ""
    decided = "" if o.agreement is None else f", the largest of a row stays as good in {o.agreement:.1%} of the rows"
    return f"output {o.name}: off by {error_text(o.error)} (at most {o.max_error:.3g} in one element){broken}{decided}"


def node_text(n: NodeNumerics, wide: int) -> str:
    """One node on a line of the table; the last column is what it makes of its inputs' errors, or what overflows."""
    if n.overflows:
        last = f"{n.overflows} of {n.size} elements overflow{f' (in its {n.step})' if n.step else ''}{', a mask' if n.mask else ''}"
    else:
        last = f"{n.wrong} of {n.size} elements differ" if n.wrong else f"{n.grown:.1f}"
    return f"{n.label:{wide}}  {n.dtype:4}  {_number(n.largest):>7}  {_number(n.filled):>8}  {error_text(n.born):>11}  {error_text(n.error):>6}  {last}"


def _number(x: float) -> str:
    return f"{x:.2e}" if x >= 1e4 else f"{x:.2g}" if x else "-"


def candidate_text(c: Candidate) -> str:
    """What fp32 would do for some nodes, and how to ask for it."""
    nodes = ", ".join(c.nodes[:SHOWN]) + (f" and {len(c.nodes) - SHOWN} more" if len(c.nodes) > SHOWN else "")
    effect = "not tried" if c.after is None else f"error of the outputs {error_text(c.before)} -> {error_text(c.after)}"
    switch = (
        f"; --precision MODE,{','.join(f'keep={name}' for name in c.keep)}"
        if 0 < len(c.keep) <= SHOWN and " " not in "".join(c.keep)
        else ""
    )
    return f"in fp32: {nodes} ({c.reason}): {effect}{switch}"


def error_text(error: float) -> str:
    """A relative error in per cent, or a word.

    >>> error_text(0.0016), error_text(float("inf")), error_text(0.0)
    ('0.16%', 'not finite', '0')
    """
    if not error:
        return "0"
    return "not finite" if math.isinf(error) else f"{error:.2g}" if error < 1e-5 else f"{error:.2%}"


def _worst(outputs: Sequence[OutputNumerics]) -> float:
    return max((math.inf if o.broken else o.error for o in outputs), default=0.0)
