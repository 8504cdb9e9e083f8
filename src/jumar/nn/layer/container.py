"""`SequentialCell`, `CellList` and `CellDict`: cells in a row, in a list, by name.

In: cells.  Out: a cell whose children they are; a child's parameters are named by its place when it is added.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from jumar.nn.cell import Cell

_List = TypeVar("_List", bound="CellList")


def _checked(owner: str, cell: Any) -> Cell:
    if not isinstance(cell, Cell):
        raise TypeError(f"For '{owner}', each cell must be subclass of Cell, but got {type(cell).__name__}.")
    return cell


def _place(owner: str, index: Any, length: int) -> int:
    if isinstance(index, bool) or not isinstance(index, int):
        raise TypeError(f"For '{owner}', the type of 'index' must be int, but got {type(index).__name__}.")
    if not -length <= index < length:
        raise IndexError(f"For '{owner}', the value of 'index' must be a number in range [{-length}, {length}), but got {index}.")
    return index % length


class SequentialCell(Cell):
    """Cells, each of which gets what the one before returned.   args: cells, a list of them, or an OrderedDict with names."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and not isinstance(args[0], Cell):
            if isinstance(args[0], OrderedDict):
                for name, cell in args[0].items():
                    self._add(name, _checked("SequentialCell", cell))
                return
            if not isinstance(args[0], list | tuple):
                raise TypeError(f"For 'SequentialCell', the 'args[0]' must be Cell, list or orderedDict, but got {type(args[0]).__name__}")
            args = tuple(args[0])
        for i, cell in enumerate(args):
            self._add(str(i), _checked("SequentialCell", cell))

    def _add(self, name: str, cell: Cell) -> None:
        if self._auto_prefix:
            cell.update_parameters_name(name + ".")
        self._cells[name] = cell

    @property
    def cell_list(self) -> tuple[Cell, ...]:
        """The cells in order."""
        return tuple(self._cells.values())

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._cells.items())[index]))
        return list(self._cells.values())[_place("SequentialCell", index, len(self))]

    def __setitem__(self, index: int, cell: Cell) -> None:
        name = list(self._cells)[_place("SequentialCell", index, len(self))]
        self._add(name, _checked("SequentialCell", cell))

    def __delitem__(self, index: Any) -> None:
        names = list(self._cells)
        doomed = names[index] if isinstance(index, slice) else [names[_place("SequentialCell", index, len(self))]]
        kept = [c for n, c in self._cells.items() if n not in doomed]
        numbered = all(n.isdigit() for n in names)
        pairs = [(str(i), c) for i, c in enumerate(kept)] if numbered else [(n, c) for n, c in self._cells.items() if n not in doomed]
        self._cells.clear()
        for name, cell in pairs:
            self._add(name, cell)

    def append(self, cell: Cell) -> SequentialCell:
        """Adds a cell at the end."""
        self._add(str(len(self)), _checked("SequentialCell", cell))
        return self

    def _insert(self, index: int, cell: Cell) -> None:
        cells = list(self._cells.values())
        cells.insert(index, _checked("SequentialCell", cell))
        self._cells.clear()
        for i, c in enumerate(cells):
            self._add(str(i), c)

    def construct(self, input_data: Any) -> Any:
        for cell in self._cells.values():
            input_data = cell(input_data)
        return input_data


class CellList(Cell):
    """Cells in a list, which are called by whoever owns it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(kwargs.pop("auto_prefix", True))
        if kwargs:
            raise TypeError(f"CellList: keyword must be auto_prefix, got {', '.join(kwargs)}")
        self.extend(args[0] if len(args) == 1 and not isinstance(args[0], Cell) else args)

    def _renumber(self, cells: Iterable[Cell]) -> None:
        found = list(cells)
        self._cells.clear()
        for i, cell in enumerate(found):
            self._add(i, cell)

    def _add(self, index: int, cell: Cell) -> None:
        if self._auto_prefix:
            cell.update_parameters_name(f"{index}.")
        self._cells[str(index)] = cell

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._cells.values())[index])
        if not isinstance(index, int) and hasattr(index, "__index__"):
            index = index.__index__()  # a tensor: the capture branches on it
        return self._cells[str(_place(type(self).__name__, index, len(self)))]

    def __setitem__(self, index: int, cell: Cell) -> None:
        self._add(_place(type(self).__name__, index, len(self)), _checked(type(self).__name__, cell))

    def __delitem__(self, index: Any) -> None:
        cells = list(self._cells.values())
        del cells[index if isinstance(index, slice) else _place(type(self).__name__, index, len(self))]
        self._renumber(cells)

    def __iadd__(self: _List, cells: Iterable[Cell]) -> _List:
        return self.extend(cells)

    def append(self: _List, cell: Cell) -> _List:
        """Adds a cell at the end."""
        self._add(len(self), _checked(type(self).__name__, cell))
        return self

    def extend(self: _List, cells: Iterable[Cell]) -> _List:
        """Adds cells at the end."""
        if isinstance(cells, str | Mapping) or not isinstance(cells, Iterable):
            raise TypeError(f"For 'CellList', the new cells wanted to append must be instance of list, but got {type(cells).__name__}.")
        for cell in list(cells):
            self.append(cell)
        return self

    def insert(self, index: int, cell: Cell) -> None:
        """Puts a cell before the one at a place."""
        cells = list(self._cells.values())
        if not -len(cells) <= index <= len(cells):
            raise IndexError(
                f"For 'CellList', the value of 'index' must be a number in range [{-len(cells)}, {len(cells)}], but got {index}."
            )
        cells.insert(index, _checked(type(self).__name__, cell))
        self._renumber(cells)

    def construct(self, *inputs: Any) -> Any:
        raise NotImplementedError("CellList: a list of cells computes nothing, call the cells in it")


class CellDict(Cell):
    """Cells by name, which are called by whoever owns it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(kwargs.pop("auto_prefix", True))
        if kwargs or len(args) > 1:
            raise TypeError("CellDict: arguments must be one dict or iterable of pairs, and auto_prefix")
        if args and args[0] is not None:
            self.update(args[0])

    def __getitem__(self, key: str) -> Cell:
        return self._cells[self._key(key)]  # type: ignore[no-any-return]

    def _key(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(f"For 'CellDict', the type of 'key' must be str, but got {type(key).__name__}.")
        return key

    def __setitem__(self, key: str, cell: Cell) -> None:
        name = self._key(key)
        if not name or "." in name:
            raise KeyError(f"For 'CellDict', the 'key' must be a name without '.', but got {key!r}.")
        if name not in self._cells and hasattr(self, name):
            raise KeyError(f"For 'CellDict', the 'key' must not be the name of an attribute, but got {key!r}.")
        _checked("CellDict", cell)
        if self._auto_prefix:
            cell.update_parameters_name(name + ".")
        self._cells[name] = cell

    def __delitem__(self, key: str) -> None:
        del self._cells[self._key(key)]

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __contains__(self, key: object) -> bool:
        return key in self._cells

    def clear(self) -> None:
        """Takes all cells out."""
        self._cells.clear()

    def pop(self, key: str) -> Cell:
        """Takes a cell out and returns it."""
        return self._cells.pop(self._key(key))  # type: ignore[no-any-return]

    def keys(self) -> Any:
        return self._cells.keys()

    def values(self) -> Any:
        return self._cells.values()

    def items(self) -> Any:
        return self._cells.items()

    def update(self, cells: Any) -> None:
        """Adds cells from a dict, a CellDict or pairs."""
        if isinstance(cells, Mapping | CellDict):
            pairs: Iterable[Any] = list(cells.items())
        elif isinstance(cells, Iterable):
            pairs = list(cells)
        else:
            raise TypeError(f"For 'CellDict', the cells must be a dict or an iterable of pairs, but got {type(cells).__name__}.")
        for pair in pairs:
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise ValueError(f"For 'CellDict', each element must be a pair of name and cell, but got {pair!r}.")
            self[pair[0]] = pair[1]

    def construct(self, *inputs: Any) -> Any:
        raise NotImplementedError("CellDict: a dict of cells computes nothing, call the cells in it")
