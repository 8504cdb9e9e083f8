"""Checks: pure functions from what was seen of a machine to facts, which the knowledge's rules turn into findings.

In: a `View`.  Out: `Fact`s in the order of the stack, driver first, so that the deeper cause leads.
"""

from collections.abc import Callable
from dataclasses import replace

from jumar.tools.doctor.checks import abi, cann, card, chip, container, driver, framework, hccl, host, network, rank_table, rights
from jumar.tools.doctor.machine import Machine
from jumar.tools.doctor.view import View, view
from jumar.tools.knowledge import Fact, Moment

CHECKS: tuple[Callable[[View], list[Fact]], ...] = (
    *driver.CHECKS,
    *card.CHECKS,
    *container.CHECKS,
    *rights.CHECKS,
    *chip.CHECKS,
    *cann.CHECKS,
    *framework.CHECKS,
    *abi.CHECKS,
    *rank_table.CHECKS,
    *hccl.CHECKS,
    *network.CHECKS,
    *host.CHECKS,
)


def facts(machine: Machine) -> tuple[Fact, ...]:
    """All facts of a machine; their moments keep the order of the checks."""
    seen = view(machine)
    found = [one for check in CHECKS for one in check(seen)]
    return tuple(replace(one, moment=Moment(0.0, 0, number)) for number, one in enumerate(found))


__all__ = ["CHECKS", "facts"]
