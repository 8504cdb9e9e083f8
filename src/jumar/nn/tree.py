"""`Tree`: what a cell owns - parameters, children, buffers - by which names, and how it is walked.

In: assignments to attributes.  Out: names and parameters in MindSpore's order: a cell's own parameters before those of its children.
A parameter without a name gets that of its attribute; a cell that becomes an attribute gives all parameters below it their dotted paths.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from jumar.base import nearest
from jumar.frontend.guards import EPOCH
from jumar.frontend.parameter import Parameter, ParameterTuple
from jumar.frontend.tensor import LOCAL, Tensor
from jumar.nn.registry import Registry

if TYPE_CHECKING:
    from jumar.nn.cell import Cell

_Self = TypeVar("_Self", bound="Tree")
MIXED = [0]  # how many times a cell was told to compute in another element type: parameters are not looked at before


class Tree:
    """The registers of a cell, and its attribute rules."""

    _params: Registry
    _cells: Registry
    _buffers: Registry
    _auto_prefix: bool
    _param_prefix: str
    _mixed: Any  # the element type that inputs and parameters are cast to, or None
    _ours = False  # one of our own layers, which assigns to no parameter that it reads by name

    def _init_tree(self, auto_prefix: bool) -> None:
        state = self.__dict__
        state["_params"], state["_cells"], state["_buffers"] = Registry(), Registry(), Registry()
        state["_non_persistent"] = set()
        state["_auto_prefix"], state["_param_prefix"] = auto_prefix, ""

    # ------------------------------------------------------------------ attributes
    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        params = state.get("_params")
        if params is not None:
            if name in params:
                found = params[name]
                return self._precise(found) if MIXED[0] and found is not None else found
            if name in state["_cells"]:
                return state["_cells"][name]
            if name in state["_buffers"]:
                return state["_buffers"][name]
        if params is None and not name.startswith("__"):
            raise AttributeError(f"{type(self).__name__}: super().__init__() must be called before attribute '{name}' is used")
        known = [n for n in (*dir(type(self)), *state, *(params or ()), *state.get("_cells", ())) if not n.startswith("_")]
        hint = "" if name.startswith("_") else nearest(name, known)
        raise AttributeError(f"The '{type(self).__name__}' object has no attribute '{name}'.{f' ({hint})' if hint else ''}")

    def _precise(self, param: Parameter) -> Tensor:
        """A parameter as a cell that computes in another element type sees it."""
        calls = LOCAL.calls
        if not calls:
            return param
        running = calls[-1]
        wanted = running._mixed
        if wanted is None or not (param.requires_grad or running._ours) or not param.dtype.is_floating_point:
            return param
        from jumar.frontend.promote import cast  # noqa: PLC0415

        return cast(param, wanted)

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if isinstance(value, Tensor) and not isinstance(value, Parameter) and state.get("_params", {}).get(name) is not None:
            state["_params"][name].set_data(value)  # a new value changes no structure
            return
        EPOCH[0] += 1
        if isinstance(value, Parameter):
            self._set_param(name, value)
        elif isinstance(value, Tree):
            self._set_cell(name, value)
        elif isinstance(value, ParameterTuple):
            self._set_tuple(name, value)
        elif name in state.get("_params", ()):
            self._set_on_param(name, value)
        elif name in state.get("_cells", ()):
            if value is not None:
                raise TypeError(f"Sub cell '{name}' already exists in network, can not assign this type: '{type(value)}' as a cell.")
            self._cells[name] = None
        elif name in state.get("_buffers", ()):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_param(self, name: str, value: Parameter) -> None:
        state = self.__dict__
        if "_params" not in state:
            raise AttributeError("For 'insert_param_to_cell', please call Cell.__init__() firstly.")
        for where in ("_cells", "_buffers"):
            if state[where].get(name, None) is None:
                state[where].pop(name, None)
        state.pop(name, None)
        self.insert_param_to_cell(name, value)

    def _set_cell(self, name: str, value: Tree) -> None:
        state = self.__dict__
        if "_auto_prefix" not in state:
            raise AttributeError(f"{type(self).__name__}: super().__init__() must be called before parameters and cells are assigned")
        if state["_params"].get(name, _NOTHING) is None:
            state["_params"].pop(name)
        if self._auto_prefix:
            value.update_parameters_name(name + ".")
        state.pop(name, None)
        self.insert_child_to_cell(name, value)

    def _set_tuple(self, name: str, value: ParameterTuple) -> None:
        if "_params" not in self.__dict__:
            raise AttributeError("Cell: __init__ of Cell must be called before parameters are assigned")
        for p in value:
            known = self._params.get(p.name)
            if known is not None and known is not p and not any(known is q for q in self._tuple_members()):
                self._params[f"{name}.{p.name}"] = p
            else:
                self._params[p.name] = p
        object.__setattr__(self, name, value)

    def _tuple_members(self) -> list[Parameter]:
        return [p for v in self.__dict__.values() if isinstance(v, ParameterTuple) for p in v]

    def _set_on_param(self, name: str, value: Any) -> None:
        """An attribute that is a parameter is given something else: only None."""
        if value is not None:
            raise TypeError(f"Parameter '{name}' already exists in network, can not assign this type: '{type(value)}' as a parameter.")
        self._params[name] = None

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"Buffer '{name}' already exists in network, can not assign this type: '{type(value)}' as a buffer.")
        old = self._buffers[name]
        if LOCAL.recorder is not None and old is not None and value is not None and old.type_ == value.type_:
            old._write(value)
        else:
            self._buffers[name] = value

    def __delattr__(self, name: str) -> None:
        EPOCH[0] += 1
        state = self.__dict__
        for where in ("_params", "_cells", "_buffers"):
            if name in state.get(where, ()):
                del state[where][name]
                return
        if isinstance(state.get(name), ParameterTuple):
            members: ParameterTuple = state[name]
            for p in members:
                if self._params.get(p.name) is p:
                    del self._params[p.name]
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._params, *self._cells, *self._buffers})

    # ------------------------------------------------------------------ registering
    def insert_param_to_cell(self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True) -> None:
        """Makes a parameter one of this cell's own; one without a name gets this one."""
        if not param_name:
            raise KeyError("For 'insert_param_to_cell', the argument 'param_name' should not be None.")
        if check_name_contain_dot and "." in param_name:
            raise KeyError("For 'insert_param_to_cell', the argument 'param_name' should not contain'.' ")
        if "_params" not in self.__dict__:
            raise AttributeError("For 'insert_param_to_cell', please call Cell.__init__() firstly.")
        if self._cells.get(param_name) is not None or param_name in self.__dict__:
            raise KeyError(
                f"For 'insert_param_to_cell', the {param_name} parameter already exists in the network."
                "Cannot insert another parameter with the same name."
            )
        if not isinstance(param, Parameter) and param is not None:
            raise TypeError(f"For 'insert_param_to_cell', the argument 'param' must be 'Parameter' if not None, but got {type(param)}.")
        if param is not None and param.is_unnamed:
            param.name = param_name
        self._params[param_name] = param

    def insert_child_to_cell(self, child_name: str, child_cell: Any) -> None:
        """Makes a cell a child; the names of its parameters stay."""
        if not isinstance(child_name, str):
            raise TypeError(f"For 'insert_child_to_cell', the argument 'child_name' must be 'str', but got {type(child_name)}.")
        if not child_name or "." in child_name:
            raise KeyError(f"For 'insert_child_to_cell', the argument 'child_name' must be a name without '.', got {child_name!r}.")
        if not isinstance(child_cell, Tree) and child_cell is not None:
            raise TypeError(
                f"For 'insert_child_to_cell', the argument 'child_cell' must be 'Cell' if not None, but got type {type(child_cell)}."
            )
        if self._params.get(child_name) is not None or child_name in self.__dict__:
            raise KeyError(
                f"For 'insert_child_to_cell', the {child_name} child cell already exists in the network."
                "Cannot insert another child cell with the same name."
            )
        self._cells[child_name] = child_cell

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """A tensor that belongs to the cell without being a parameter.   persistent: whether `state_dict` has it."""
        if "_params" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Cell.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"buffer name should be a string. Got {type(name)}")
        if not name or "." in name:
            raise KeyError(f"register_buffer: name must be a name without '.', got {name!r}")
        if (name in self.__dict__ or hasattr(type(self), name)) and name not in self._buffers:
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type(tensor)}' object to buffer '{name}' (mindspore Tensor or None required)")
        self._buffers[name] = tensor
        hidden: set[str] = self.__dict__["_non_persistent"]
        hidden.discard(name) if persistent else hidden.add(name)

    # ------------------------------------------------------------------ walking
    def cells_and_names(self, cells: set[Any] | None = None, name_prefix: str = "") -> Iterator[tuple[str, Cell]]:
        """This cell and all below it, each once, with their dotted paths."""
        seen = cells if cells is not None else set()
        if self in seen:
            return
        seen.add(self)
        yield name_prefix, self  # type: ignore[misc]
        for name, child in self._cells.items():
            if child is not None:
                yield from child.cells_and_names(seen, f"{name_prefix}.{name}" if name_prefix else name)

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Every parameter once, with its dotted path.   expand: also those of children."""
        seen: set[int] = set()
        cells: Any = self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]
        for path, cell in cells:
            for name, param in cell._params.items():
                if param is not None and id(param) not in seen:
                    seen.add(id(param))
                    yield (f"{path}.{name}" if path else name), param

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Every parameter once."""
        for _, param in self.parameters_and_names(expand=expand):
            yield param

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The parameters that optimisers take."""
        return [p for p in self.get_parameters(expand=recurse) if p.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The parameters that optimisers leave alone."""
        return [p for p in self.get_parameters(expand=recurse) if not p.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """Parameters by their own names."""
        return OrderedDict((p.name, p) for p in self.get_parameters(expand=recurse))

    parameters_broadcast_dict = parameters_dict

    def name_cells(self) -> OrderedDict[str, Cell]:
        """The children by name, each once."""
        found: OrderedDict[str, Any] = OrderedDict()
        seen: set[int] = set()
        for name, child in self._cells.items():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                found[name] = child
        return found

    def cells(self) -> Any:
        """The children, each once."""
        return self.name_cells().values()

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Every buffer with its dotted path."""
        seen: set[int] = set()
        cells: Any = self.cells_and_names(name_prefix=prefix) if recurse else [(prefix, self)]
        for path, cell in cells:
            for name, buffer in cell._buffers.items():
                if buffer is None or (remove_duplicate and id(buffer) in seen):
                    continue
                seen.add(id(buffer))
                yield (f"{path}.{name}" if path else name), buffer

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Every buffer."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_sub_cell(self, target: str) -> Cell:
        """The cell at a dotted path; the cell itself for the empty one."""
        found: Any = self
        for name in target.split(".") if target else ():
            found = getattr(found, name, None) if isinstance(found, Tree) else None
            if not isinstance(found, Tree):
                raise AttributeError(f"{type(self).__name__}: path must lead to a cell, got {target!r}, where {name!r} is none")
        return found  # type: ignore[no-any-return]

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        cell = self.get_sub_cell(path)
        if name not in cell._buffers:
            raise AttributeError(f"{type(self).__name__}: path must lead to a buffer, got {target!r}")
        return cell._buffers[name]  # type: ignore[no-any-return]

    # ------------------------------------------------------------------ names
    @property
    def param_prefix(self) -> str:
        """What `update_cell_prefix` found the cell's path to be."""
        return self._param_prefix

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Names every parameter by its dotted path after a prefix."""
        if not isinstance(prefix, str):
            raise TypeError(f"update_parameters_name: prefix must be a str, got {type(prefix).__name__}")
        if prefix:
            for name, param in self.parameters_and_names(expand=recurse):
                param.name = prefix + name

    def update_cell_prefix(self) -> None:
        """Gives each cell below its path as `param_prefix`."""
        for name, cell in self.cells_and_names():
            cell.__dict__["_param_prefix"] = name

    def check_names(self) -> None:
        """Raises where two parameters have one name."""
        names: set[str] = set()
        for path, param in self.parameters_and_names():
            if param.name in names:
                raise ValueError(
                    f"The value of {path} is {param}, its name '{param.name}' already exists. Please set a unique name for the parameter."
                )
            names.add(param.name)

    def check_names_and_refresh_name(self) -> None:
        """Names all parameters by their paths."""
        for name, param in self.parameters_and_names():
            if param.is_unnamed:
                param.name = name
        self.check_names()

    def apply(self: _Self, fn: Callable[[Any], Any]) -> _Self:
        """Calls a function with every cell below, then with this one."""
        for child in self.cells():
            child.apply(fn)
        fn(self)
        return self


_NOTHING = object()
