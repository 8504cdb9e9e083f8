"""`state_dict` and `load_state_dict`: the parameters and buffers of a tree of cells as a dict, and back.

In: cells.  Out: names and tensors; which names were missing or too many.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jumar.frontend.tensor import Tensor
from jumar.nn.tree import Tree

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """Names that a cell has and the dict has not, and the other way round."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class State(Tree):
    """What a cell can give away and take over.   `get_extra_state` and `set_extra_state` are for subclasses."""

    def get_extra_state(self) -> Any:
        raise NotImplementedError("get_extra_state: a cell that has extra state must define get_extra_state and set_extra_state")

    def set_extra_state(self, state: Any) -> None:
        raise NotImplementedError("set_extra_state: a cell that has extra state must define get_extra_state and set_extra_state")

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers, by path.   keep_vars has no effect: the tensors are always the cell's own."""
        for given, name in zip(args, ("destination", "prefix", "keep_vars"), strict=False):
            if name == "destination":
                destination = given
            elif name == "prefix":
                prefix = given
        found = OrderedDict() if destination is None else destination
        for pre_hook in list(self._state_hooks("state_dict_pre")):
            pre_hook(self, prefix, keep_vars)
        self._save_to_state_dict(found, prefix, keep_vars)
        for name, child in self._cells.items():
            if child is not None:
                child.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in list(self._state_hooks("state_dict_post")):
            changed = hook(self, found, prefix, {})
            found = found if changed is None else changed
        return found

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        hidden = self.__dict__["_non_persistent"]
        for name, param in self._params.items():
            if param is not None:
                destination[prefix + name] = param
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in hidden:
                destination[prefix + name] = buffer
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Takes over values by path.   strict: names must match exactly."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        state = OrderedDict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        self._load_tree(state, "", strict, missing, unexpected, errors)
        result = IncompatibleKeys(missing, unexpected)
        for cell in (c for _, c in self.cells_and_names()):
            for hook in list(cell._state_hooks("load_state_dict_post")):
                hook(cell, result)
        if strict and unexpected:
            errors.insert(0, "Unexpected key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in unexpected)))
        if strict and missing:
            errors.insert(0, "Missing key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in missing)))
        if errors:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors)))
        return result

    def _load_tree(self, state: Any, prefix: str, strict: bool, missing: list[str], unexpected: list[str], errors: list[str]) -> None:
        self._load_from_state_dict(state, prefix, {}, True, missing, unexpected, errors)
        for name, child in self._cells.items():
            if child is not None:
                path = f"{prefix}{name}."
                child._load_tree({k: v for k, v in state.items() if k.startswith(path)}, path, strict, missing, unexpected, errors)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        for hook in list(self._state_hooks("load_state_dict_pre")):
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        hidden = self.__dict__["_non_persistent"]
        own = {**self._params, **{n: b for n, b in self._buffers.items() if n not in hidden}}
        for name, tensor in own.items():
            if tensor is None:
                continue
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            given = state_dict[key]
            if not isinstance(given, Tensor):
                error_msgs.append(f'"{key}" must be a Tensor, got {type(given).__name__}')
            elif tuple(given.shape) != tuple(tensor.shape):
                error_msgs.append(f'"{key}" must have shape {tuple(tensor.shape)}, got {tuple(given.shape)}')
            else:
                from jumar.frontend.promote import cast  # noqa: PLC0415

                tensor._write(cast(given, tensor.dtype))
        key = prefix + EXTRA
        if type(self).set_extra_state is not State.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            else:
                missing_keys.append(key)
        for key in state_dict:
            if key.startswith(prefix):
                name, dot, _ = key[len(prefix) :].partition(".")
                known = name in self._cells if dot else (name in own or name == EXTRA)
                if not known:
                    unexpected_keys.append(key)

    # ------------------------------------------------------------------ hooks
    def _state_hooks(self, kind: str) -> list[Callable[..., Any]]:
        found: list[Callable[..., Any]] = self.__dict__.get("_hooks", {}).get(kind, [])
        return found

    def _add_state_hook(self, kind: str, hook: Callable[..., Any]) -> ListHandle:
        hooks = self.__dict__["_hooks"].setdefault(kind, [])
        hooks.append(hook)
        return ListHandle(hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> ListHandle:
        """`hook(cell, prefix, keep_vars)` before `state_dict`."""
        return self._add_state_hook("state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> ListHandle:
        """`hook(cell, state_dict, prefix, local_metadata)` after `state_dict`."""
        return self._add_state_hook("state_dict_post", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> ListHandle:
        """`hook(cell, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before a cell takes its values."""
        return self._add_state_hook("load_state_dict_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> ListHandle:
        """`hook(cell, incompatible_keys)` after `load_state_dict`."""
        return self._add_state_hook("load_state_dict_post", hook)


class ListHandle:
    """Takes a hook out of its list."""

    def __init__(self, hooks: list[Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """The hook is called no more."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)
