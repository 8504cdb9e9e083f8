"""Phases: in how many passes over a row an expression with reductions is computed, and what each pass needs.

In: an `Expression` with `Accumulate` steps.  Out: `Phases`, for `rows_kernel.py`.

A pass runs over all elements of a row; what it accumulates is known before the next one.  Softmax has three: the maximum, the sum of
exponentials, the quotient.  An element's value that a later pass needs again is computed again where that is cheap, else stashed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jumar.operators.cpu.expression import Accumulate, Expression, Step, step_cost

STASH_FROM = 5.0  # units of work above which a value is kept for the next pass


@dataclass(frozen=True)
class Phases:
    """element: which inputs differ along the reduced axes; the rest of a row's values is the same all along it."""

    expression: Expression
    element_inputs: tuple[bool, ...]

    @cached_property
    def levels(self) -> tuple[tuple[bool, ...], tuple[int, ...]]:
        """(is it one value for each element?, the first pass in which it is known) of each value."""
        element, phase = list(self.element_inputs), [0] * len(self.element_inputs)
        for step in self.expression.steps:
            if isinstance(step.op, Accumulate):
                element.append(False)
                phase.append(phase[step.args[0]] + 1)
            else:
                own = step.op.name == "position"
                element.append(own or any(element[a] for a in step.args))
                phase.append(max((phase[a] for a in step.args), default=0))
        return tuple(element), tuple(phase)

    def element(self, number: int) -> bool:
        return self.levels[0][number]

    def phase(self, number: int) -> int:
        return self.levels[1][number]

    @property
    def count(self) -> int:
        """Number of passes."""
        accumulated = [self.phase(n) for n in self.accumulates]
        stored = [self.phase(n) + 1 for n in self.expression.outputs if self.element(n)]
        return max([*accumulated, *stored], default=0)

    @cached_property
    def accumulates(self) -> tuple[int, ...]:
        """Values that are accumulated."""
        first = len(self.expression.inputs)
        return tuple(first + i for i, s in enumerate(self.expression.steps) if isinstance(s.op, Accumulate))

    def accumulated_in(self, number: int) -> tuple[int, ...]:
        """Values that pass `number` accumulates."""
        return tuple(n for n in self.accumulates if self.phase(n) == number + 1)

    def stored_in(self, number: int) -> tuple[int, ...]:
        """Outputs (their places among the outputs) that pass `number` stores element by element."""
        outputs = self.expression.outputs
        return tuple(i for i, n in enumerate(outputs) if self.element(n) and self.phase(n) == number)

    def roots(self, number: int) -> tuple[int, ...]:
        """What pass `number` must compute."""
        outputs = self.expression.outputs
        return tuple(dict.fromkeys([*(self.arg(n) for n in self.accumulated_in(number)), *(outputs[i] for i in self.stored_in(number))]))

    def arg(self, number: int) -> int:
        step = self.expression.step(number)
        assert step is not None, "an accumulated value is a step"
        return step.args[0]

    @cached_property
    def stashed(self) -> tuple[int, ...]:
        """Values that are kept from the pass that makes them to a later one."""
        found: set[int] = set()
        for number in range(1, self.count):
            seen: set[int] = set()
            todo = list(self.roots(number))
            while todo:
                value = todo.pop()
                step = self.expression.step(value)
                if step is None or value in seen or value in found or not self.element(value):
                    continue
                seen.add(value)
                if self.phase(value) < number and self.cone(value) >= STASH_FROM and value in self.needed_in(self.phase(value)):
                    found.add(value)
                else:
                    todo += step.args
        return tuple(sorted(found))

    def needed_in(self, number: int) -> set[int]:
        """Values that pass `number` makes on the way to its roots: only these can be kept from it."""
        seen: set[int] = set()
        todo = list(self.roots(number))
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                step = self.expression.step(at)
                todo += step.args if step and self.element(at) else ()
        return seen

    def cone(self, value: int) -> float:
        """Work to compute an element's value from the inputs and what is known of the row."""
        seen: set[int] = set()
        work, todo = 0.0, [value]
        while todo:
            at = todo.pop()
            step = self.expression.step(at)
            if step is None or at in seen or not self.element(at):
                continue
            seen.add(at)
            work += step_cost(step)
            todo += step.args
        return work

    def pass_cost(self, number: int) -> float:
        """Work of a pass for one vector."""
        seen: set[int] = set()
        work = 0.0
        todo = list(self.roots(number))
        while todo:
            at = todo.pop()
            if at in seen or not self.element(at):
                continue
            seen.add(at)
            step = self.expression.step(at)
            if step is None or (at in self.stashed and self.phase(at) < number):
                work += 1
                continue
            work += step_cost(step)
            todo += step.args
        return work + len(self.accumulated_in(number)) + len(self.stored_in(number))

    @property
    def cost(self) -> float:
        """Work of all passes for one vector."""
        return sum(self.pass_cost(p) for p in range(self.count))


def pruned(expression: Expression, outputs: tuple[int, ...]) -> tuple[Expression, tuple[int, ...]]:
    """The expression with only the steps that `outputs` need; and the numbers of the inputs that are left."""
    needed: set[int] = set()
    todo = list(outputs)
    while todo:
        at = todo.pop()
        if at not in needed:
            needed.add(at)
            step = expression.step(at)
            todo += step.args if step else ()
    first = len(expression.inputs)
    kept = tuple(i for i in range(first) if i in needed)
    new = {old: i for i, old in enumerate(kept)}
    steps: list[Step] = []
    for i, step in enumerate(expression.steps, first):
        if i in needed:
            new[i] = len(kept) + len(steps)
            steps.append(Step(step.op, tuple(new[a] for a in step.args), step.dtype))
    return Expression(tuple(expression.inputs[i] for i in kept), tuple(steps), tuple(new[o] for o in outputs)), kept
