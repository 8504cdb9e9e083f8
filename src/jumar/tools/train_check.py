"""`jumar train-check SCRIPT`: why a training run does not converge.

In: a script that trains.  Out: findings, in words or as JSON, most likely cause first; exit code 1 if one breaks training.
The script runs for some steps, watched, in a process of its own; then again with what one suspects changed: a tenth of the learning rate, layers in float32.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click

from jumar.base import ToolError
from jumar.tools.training.bisect import smallest
from jumar.tools.training.facts import Facts, Order, mean
from jumar.tools.training.findings import LIKELY, SURE, Finding, findings


@dataclass
class Lab:
    """Runs of one script."""

    script: Path
    arguments: Sequence[str]
    steps: int
    timeout_s: float
    runs: int = 0
    said: dict[Order, Facts] = field(default_factory=dict)

    def run(self, wide: tuple[str, ...] = (), factor: float = 1.0) -> Facts:
        """The facts of a run."""
        order = Order(self.steps, wide, factor)
        if order not in self.said:
            self.runs += 1
            self.said[order] = self._run(order)
        return self.said[order]

    def _run(self, order: Order) -> Facts:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "facts.json"
            call = [sys.executable, "-m", "jumar.tools.training.watch", order.to_json(), str(out), str(self.script), *self.arguments]
            source = str(Path(__file__).parents[2])
            environment = os.environ | {
                "PYTHONPATH": os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH", "")])]),
                "JUMAR_PROGRESS": "0",
            }
            try:
                done = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=self.timeout_s, check=False)
            except subprocess.TimeoutExpired:
                what = f"train-check: {self.steps} steps must take at most {self.timeout_s:g} s, got more"
                raise ToolError(what, hint="fewer --steps, a longer --timeout, a smaller batch", code="train-check") from None
            if not out.exists():
                last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
                raise ToolError(f"train-check: script must run, got exit code {done.returncode}: {last:.300}", code="train-check")
            return Facts.from_json(out.read_text(encoding="utf-8"))


@click.command("train-check", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--steps", type=click.IntRange(3, 10_000), default=30, show_default=True, help="Steps of a run.")
@click.option("--timeout", "timeout_s", type=float, default=600.0, show_default=True, help="Seconds that a run may take.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(script: Path, arguments: tuple[str, ...], steps: int, timeout_s: float, as_json: bool) -> None:
    """Say why a training script does not converge: data, overflow, gradients, dead units, learning rate, precision.

    \b
    jumar train-check train.py --batch-size 32
    jumar train-check --steps 100 --json train.py
    """
    lab = Lab(script, arguments, steps, timeout_s)
    base = lab.run()
    found = findings(base)
    broken = any(f.level == SURE for f in found if f.topic in ("data", "script"))
    if not broken:
        found += _precision(lab, base)
        found += _rate(lab, base, found)
    found.sort(key=lambda f: (SURE, LIKELY, "note").index(f.level))
    if as_json:
        click.echo(json.dumps(_document(base, found, lab.runs), indent=1, ensure_ascii=False))
    else:
        click.echo(_report(base, found, lab.runs))
    if any(f.level == SURE for f in found):
        raise SystemExit(1)


def _well(facts: Facts) -> bool:
    skipped = len(facts.losses) - facts.steps
    return facts.finite and skipped <= max(2, facts.steps // 2)


def _precision(lab: Lab, base: Facts) -> list[Finding]:
    """Whether float32 mends it, and in which layers."""
    if not base.narrow or not base.narrow_leaves:
        return []
    wide = lab.run(wide=("*",))
    lost = [n for n, layer in base.layers.items() if n in wide.layers and mean(layer.zeros) > mean(wide.layers[n].zeros) + 0.1]
    found = []
    if lost and base.finite:
        shares = f"{mean(base.layers[lost[0]].zeros):.0%} instead of {mean(wide.layers[lost[0]].zeros):.0%} of {lost[0]}"
        what = f"gradients underflow in {len(lost)} parameters at loss scale {base.scales[-1] if base.scales else 1:g}: {shares} are 0"
        found.append(
            Finding(LIKELY, "underflow", what, ", ".join(lost[:5]), "a higher loss scale, or a dynamic one (DynamicLossScaleManager)")
        )
    if _well(base) or not _well(wide):
        return found
    culprits = smallest(base.narrow_leaves, lambda layers: _well(lab.run(wide=layers)))
    what = f"training is well with {'this layer' if len(culprits) == 1 else f'these {len(culprits)} layers'} in float32"
    found.append(Finding(SURE, "precision", what, ", ".join(culprits), "layer.to_float(mindspore.float32), after the network was cast"))
    return found


def _rate(lab: Lab, base: Facts, found: Sequence[Finding]) -> list[Finding]:
    """Whether a lower learning rate mends it."""
    if any(f.topic == "precision" for f in found) or base.falls or not base.rates or (base.steps < 3 and base.finite):
        return []
    for factor in (0.1, 0.01, 0.001):
        lower = lab.run(factor=factor)
        if lower.falls and (not base.finite or lower.last < base.last):
            now = base.rates[0]
            end = f"{base.last:.4g}" if base.finite else "NaN or infinity"
            what = f"is too high: with {now * factor:g} instead of {now:g} the loss falls from {lower.first:.4g} to {lower.last:.4g}, not to {end}"
            return [Finding(SURE, "learning rate", what, "", f"try {now * factor:g}, or a warm-up")]
    return []


def _document(facts: Facts, found: Sequence[Finding], runs: int) -> dict[str, object]:
    layers = {
        n: {"gradient_norm": mean(layer.norms), "zeros": mean(layer.zeros), "change": mean(layer.changes)}
        for n, layer in facts.layers.items()
    }
    return {
        "findings": [asdict(f) for f in found], "steps": facts.steps, "runs": runs, "losses": facts.losses, "learning_rate": facts.rates[:1],
        "loss_scale": facts.scales[-1:], "layers": layers, "relus": facts.relus,
    }  # fmt: skip


def _report(facts: Facts, found: Sequence[Finding], runs: int) -> str:
    first = f"loss {facts.losses[0]:.4g} -> {facts.losses[-1]:.4g}" if facts.losses else "no loss seen"
    lines = [f"{facts.steps} steps, {first}, {runs} run{'s' if runs > 1 else ''}", ""]
    for f in found:
        lines.append(
            f"{f.level}: {f.topic}: {f'{f.where}: ' if f.where and f.topic in ('data', 'dead units', 'gradients') else ''}{f.what}"
        )
        if f.where and f.topic not in ("data", "dead units", "gradients"):
            lines.append(f"    at {f.where}")
        if f.way_out:
            lines.append(f"    {f.way_out}")
    if not found:
        lines.append("nothing that looks wrong")
    lines += ["", "parameter".ljust(40) + "gradient      zeros    change"]
    for name, layer in list(facts.layers.items())[:60]:
        lines.append(f"{name[:39].ljust(40)}{mean(layer.norms):<12.4g}  {mean(layer.zeros):<7.1%}  {mean(layer.changes):.2g}")
    return "\n".join(lines)
