"""Parameters of a checkpoint into a network: all that fit, or none.

In: a network and a dict of Parameters by name.  Out: names that were left over on either side; a table of all that does not fit where something does not.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from jumar.frontend import Parameter, Tensor, dtype, wrap
from jumar.train.errors import KindFault, MismatchError, check_kind
from jumar.train.network import Network, parameters_of

_FLOATS = (dtype.float16, dtype.float32, dtype.float64, dtype.bfloat16)
_INTS = (dtype.int8, dtype.int16, dtype.int32, dtype.int64)
_MOST_ROWS = 60
log = logging.getLogger("jumar.train")


def load_param_into_net(
    net: Network, parameter_dict: Mapping[str, Any], strict_load: bool = False, remove_redundancy: bool = False
) -> tuple[list[str], list[str]]:
    """Gives the network the values of a checkpoint.   -> (names of the network without value, names of the checkpoint without place)

    strict_load: element types must be the same, and names, too; else floats go into floats and ints into ints, and a prefix that all names of the
    checkpoint have is passed over.  Where a shape or type does not fit, nothing is loaded and the error lists everything that does not.
    """
    _check(net, parameter_dict)
    check_kind("load_param_into_net", "strict_load", strict_load, bool)
    if remove_redundancy:
        raise KindFault("load_param_into_net: remove_redundancy must be False for a network on one device, got True", code="train-argument")
    params = parameters_of(net)
    sources = {p.name: p.name for p in params if isinstance(parameter_dict.get(p.name), Tensor)}
    left = [p.name for p in params if p.name not in parameter_dict and not p.name.startswith("accu_grads")]
    over = [name for name in parameter_dict if name not in sources]
    if left and not strict_load:
        found = _behind_prefixes(left, parameter_dict)
        sources |= found
        left = [name for name in left if name not in found]
    pairs = [(p, parameter_dict[sources[p.name]]) for p in params if p.name in sources]
    faults = [fault for p, new in pairs if (fault := _fault(p, new, strict_load))]
    if faults:
        raise _mismatch(faults, left, [n for n in over if n not in sources.values()], params, parameter_dict)
    for p, new in pairs:
        _assign(p, new)
    if left:
        log.warning("load_param_into_net: %d parameters of the network are not in the checkpoint: %s", len(left), ", ".join(left))
    return left, over


def _update_param(param: Parameter, new_param: Tensor, strict_load: bool = False) -> None:
    """Gives one parameter a value, if it fits.  Client code knows it by this name."""
    fault = _fault(param, new_param, strict_load)
    if fault is not None:
        raise _mismatch([fault], [], [], [param], {param.name: new_param})
    _assign(param, new_param)


def _load_dismatch_prefix_params(net: Network, parameter_dict: Mapping[str, Any], param_not_load: list[str], strict_load: bool) -> None:
    """Loads what is in the checkpoint behind a prefix; takes its names out of `param_not_load`.  Client code knows it by this name."""
    found = _behind_prefixes(param_not_load, parameter_dict)
    for p in parameters_of(net):
        if p.name in found:
            _update_param(p, parameter_dict[found[p.name]], strict_load)
            param_not_load.remove(p.name)


def _check(net: Any, parameter_dict: Any) -> None:
    if not isinstance(net, Network):
        raise KindFault(f"load_param_into_net: net must be a Cell, got {type(net).__name__}", code="train-argument")
    check_kind("load_param_into_net", "parameter_dict", parameter_dict, dict)
    for name, value in parameter_dict.items():
        if not isinstance(name, str) or not isinstance(value, Tensor | str | list):
            what = f"{type(name).__name__} and {type(value).__name__}"
            raise KindFault(f"load_param_into_net: parameter_dict must hold Parameters or texts by name, got {what}", code="train-argument")


def _behind_prefixes(left: Sequence[str], known: Mapping[str, Any]) -> dict[str, str]:
    """For names of the network, the names of the checkpoint that end with them, one prefix after the other."""
    found: dict[str, str] = {}
    open_names = list(left)
    while open_names:
        prefix = next((k[: -len(n)] for n in open_names for k in known if k.endswith(n) and k != n and isinstance(known[k], Tensor)), None)
        if prefix is None:
            break
        log.warning("load_param_into_net: names of the checkpoint begin with %r, which the network's do not; going on without it", prefix)
        found |= {n: prefix + n for n in open_names if isinstance(known.get(prefix + n), Tensor)}
        open_names = [n for n in open_names if n not in found]
    return found


# ------------------------------------------------------------------ does it fit
@dataclass(frozen=True)
class _Fault:
    name: str
    mine: str
    theirs: str


def _fault(param: Parameter, new: Tensor, strict: bool) -> _Fault | None:
    mine, theirs = tuple(param.shape), tuple(new.shape)
    kinds = {param.dtype, new.dtype}
    same_kind = len(kinds) == 1 or (not strict and (kinds <= set(_FLOATS) or kinds <= set(_INTS)))
    ones = len(theirs) > len(mine) and theirs[: len(mine)] == mine and all(d == 1 for d in theirs[len(mine) :])
    if same_kind and (mine == theirs or ones):
        return None
    return _Fault(param.name, f"{param.dtype}{list(mine)}", f"{new.dtype}{list(theirs)}")


def _assign(param: Parameter, new: Tensor) -> None:
    if tuple(new.shape) != tuple(param.shape):
        new = wrap(new.array.reshape(param.shape))
    param.set_data(new)


def _mismatch(
    faults: Sequence[_Fault], missing: Sequence[str], unexpected: Sequence[str], params: Sequence[Parameter], known: Mapping[str, Any]
) -> MismatchError:
    names = [p.name for p in params]
    rows = [("parameter", "network", "checkpoint", "nearest name")]
    rows += [(f.name, f.mine, f.theirs, "") for f in faults]
    rows += [(n, "wants it", "missing", _near(n, unexpected)) for n in missing]
    rows += [(n, "unexpected", _kind(known[n]), _near(n, missing or names)) for n in unexpected]
    shown, more = rows[:_MOST_ROWS], len(rows) - _MOST_ROWS
    widths = [max(len(r[i]) for r in shown) for i in range(4)]
    text = "\n".join("    " + "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in shown)
    if more > 0:
        text += f"\n    ... and {more} more"
    counts = f"{len(faults)} of another shape or type, {len(missing)} missing, {len(unexpected)} unexpected"
    return MismatchError(
        f"load_param_into_net: checkpoint must be of this network, got {counts}; nothing was loaded\n{text}",
        hint="build the network with the arguments of the checkpoint (number of classes, width), or leave those names out of the dict",
        code="checkpoint-mismatch",
    )


def _near(name: str, others: Sequence[str]) -> str:
    found = get_close_matches(name, others[:2000], n=1, cutoff=0.7)
    return found[0] if found else ""


def _kind(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
