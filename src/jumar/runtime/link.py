"""Object files to callable code in memory: a linker for what the code generator emits.

In: ELF relocatable objects (LLVM's output for x86-64 or aarch64 on Linux).  Out: `Code`, addresses of their functions.

LLVM brings two linkers of its own.  This one is here because a deployed model then runs without LLVM (120 MB less to ship and
to load), and because the lifetime of the code is ours: it is unmapped when the last holder of `Code` goes, or never.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from jumar.base import RuntimeFault

_PAGE = mmap.PAGESIZE
_HEADER = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MACHINES = {62: "x86_64", 183: "aarch64"}
_PROGBITS, _NOBITS, _RELA = 1, 8, 4
_WRITE, _ALLOC = 1, 2


class Code:
    """Linked code.   functions[key][name]: address of each function, by the key of its object."""

    def __init__(self, base: int, nbytes: int, functions: dict[str, dict[str, int]]) -> None:
        self.base = base
        self.nbytes = nbytes
        self.functions = functions
        self.keep = False

    def address(self, key: str) -> int:
        """Address of the function of that object: the one of the object's name, or its only one."""
        found = self.functions[key]
        if key in found:
            return found[key]
        if len(found) != 1:
            raise RuntimeFault(f"link: object {key} must define one function, got {', '.join(found) or 'none'}", code="object-damaged")
        return next(iter(found.values()))

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not self.keep and self.base and not finalizing():  # at the end of the process the memory goes anyway, and our modules are gone
            _libc().munmap(self.base, self.nbytes)


def link(objects: Mapping[str, bytes], *, machine: str = "") -> Code:
    """Code with every object's functions.   machine: this one's; another is refused, since it could not run."""
    machine = machine or platform.machine()
    images = [_Object(key, raw, machine) for key, raw in objects.items()]
    externals: dict[str, int] = {}
    size = 0
    for writable in (False, True):
        size = (size + _PAGE - 1) & -_PAGE
        if writable:
            text_nbytes = size
        for image in images:
            for section in image.sections:
                if section.alloc and section.writable == writable:
                    size = (size + section.align - 1) & -section.align
                    section.offset = size
                    size += section.size
        if not writable:  # stubs and addresses of outside functions stand at the end of the code
            size = (size + 15) & -16
            for image in images:
                for name in image.undefined:
                    if name not in externals:
                        externals[name] = size
                        size += 32
    if size == 0:
        return Code(0, 0, {})
    base = _map(size)
    memory = (ctypes.c_char * size).from_address(base)
    code = memoryview(memory).cast("B")
    for image in images:
        for section in image.sections:
            if section.alloc and section.kind != _NOBITS:
                code[section.offset : section.offset + section.size] = image.raw[section.start : section.start + section.size]
    for name, offset in externals.items():
        code[offset : offset + 24] = _stub(machine, resolve(name))
    for image in images:
        image.relocate(code, base, externals)
    code.release()
    libc = _libc()
    if libc.mprotect(base, text_nbytes, mmap.PROT_READ | mmap.PROT_EXEC):
        raise RuntimeFault("link: the system must allow executable memory, and refused it", code="memory-executable")
    if machine == "aarch64" == platform.machine():
        clear: Any = getattr(ctypes.CDLL("libgcc_s.so.1"), "__clear_cache")
        clear(ctypes.c_void_p(base), ctypes.c_void_p(base + text_nbytes))
    return Code(base, size, {image.key: image.functions(base) for image in images})


def _map(size: int) -> int:
    base = _libc().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if base in (None, ctypes.c_void_p(-1).value):
        raise RuntimeFault(f"link: the system must give {size} bytes for code, and refused them", code="memory-executable")
    return int(base)


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


@lru_cache(maxsize=256)
def resolve(name: str) -> int:
    """Address of a function of the C library or its math part."""
    for library in (None, "libm.so.6", "libc.so.6", "libgcc_s.so.1"):
        try:
            found = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        return ctypes.cast(found, ctypes.c_void_p).value or 0
    raise RuntimeFault(f"link: function must be in the C library, got {name}", code="symbol-unknown")


def _stub(machine: str, address: int) -> bytes:
    """24 bytes: a jump to the address (16), then the address itself (8), which doubles as its table entry."""
    if machine == "x86_64":
        return b"\xff\x25\x0a\x00\x00\x00" + b"\x90" * 10 + struct.pack("<Q", address)  # jmp *10(%rip)
    return struct.pack("<IIIIQ", 0x58000090, 0xD61F0200, 0xD503201F, 0xD503201F, address)  # ldr x16, +16; br x16


class _Section:
    __slots__ = ("align", "alloc", "info", "kind", "offset", "size", "start", "writable")

    def __init__(self, fields: tuple[int, ...], key: str, raw: bytes) -> None:
        _, self.kind, flags, _, self.start, self.size, _, self.info, align, _ = fields
        self.alloc = bool(flags & _ALLOC) and self.kind in (_PROGBITS, _NOBITS)
        self.writable = bool(flags & _WRITE)
        self.align = max(1, align)
        self.offset = 0
        if self.kind != _NOBITS and self.start + self.size > len(raw):
            raise _damaged(key)


class _Object:
    """One ELF file, parsed."""

    def __init__(self, key: str, raw: bytes, machine: str) -> None:
        self.key, self.raw = key, raw
        try:
            head = _HEADER.unpack_from(raw)
            if head[0] != b"\x7fELF" or head[1] != 2 or head[3] != 1:
                raise _damaged(key)
            if _MACHINES.get(head[4]) != machine:
                what = _MACHINES.get(head[4], str(head[4]))
                raise RuntimeFault(f"link: code must be for this machine ({machine}), got {what} in {key}", code="object-machine")
            self.sections = [_Section(_SECTION.unpack_from(raw, head[8] + i * _SECTION.size), key, raw) for i in range(head[14])]
            table = next((s for s in self.sections if s.kind == 2), None)
            if table is None:
                raise _damaged(key)
            strings = _SECTION.unpack_from(raw, head[8] + self.sections.index(table) * _SECTION.size)[6]
            names = self.sections[strings]
            text = raw[names.start : names.start + names.size]
            # (name, section, value, kind): kind is the type and binding byte
            self.symbols = []
            for at in range(table.start, table.start + table.size, _SYMBOL.size):
                name, kind, _, section, value, _ = _SYMBOL.unpack_from(raw, at)
                self.symbols.append((text[name : text.index(b"\0", name)].decode(), section, value, kind))
        except (struct.error, ValueError, IndexError) as error:
            raise _damaged(key) from error
        self.undefined = [name for name, section, _, _ in self.symbols if section == 0 and name]
        self.relocation = _RELOCATE[machine]

    def functions(self, base: int) -> dict[str, int]:
        return {
            name: base + self.sections[section].offset + value
            for name, section, value, kind in self.symbols
            if kind == 0x12 and section  # global function
        }

    def relocate(self, code: memoryview, base: int, externals: Mapping[str, int]) -> None:
        for section in self.sections:
            if section.kind != _RELA or not self.sections[section.info].alloc:
                continue
            into = self.sections[section.info]
            for at in range(section.start, section.start + section.size, _RELOCATION.size):
                offset, info, addend = _RELOCATION.unpack_from(self.raw, at)
                name, home, value, _ = self.symbols[info >> 32]
                target = externals[name] if home == 0 else self.sections[home].offset + value
                try:
                    self.relocation(code, into.offset + offset, info & 0xFFFFFFFF, target, addend, base, home == 0)
                except (struct.error, KeyError) as error:
                    raise RuntimeFault(
                        f"link: relocation must be one that is known, got {info & 0xFFFFFFFF} in {self.key}", code="object-damaged"
                    ) from error


def _relocate_x86(code: memoryview, place: int, kind: int, target: int, addend: int, base: int, outside: bool) -> None:
    match kind:
        case 1:  # R_X86_64_64
            struct.pack_into("<Q", code, place, base + target + addend)
        case 2 | 4:  # PC32, PLT32
            struct.pack_into("<i", code, place, target + addend - place)
        case 9 | 41 | 42 if outside:  # GOTPCREL...: the address in the stub is the table entry
            struct.pack_into("<i", code, place, target + 16 + addend - place)
        case 41 | 42 if code[place - 2] == 0x8B:  # mov name@GOTPCREL(%rip), reg -> lea name(%rip), reg
            code[place - 2] = 0x8D
            struct.pack_into("<i", code, place, target + addend - place)
        case _:
            raise KeyError(kind)


def _relocate_arm(code: memoryview, place: int, kind: int, target: int, addend: int, base: int, outside: bool) -> None:
    word = struct.unpack_from("<I", code, place)[0]
    full = base + target + addend
    match kind:
        case 257:  # ABS64
            struct.pack_into("<Q", code, place, full)
            return
        case 261:  # PREL32
            struct.pack_into("<i", code, place, target + addend - place)
            return
        case 282 | 283:  # JUMP26, CALL26
            word |= ((target + addend - place) >> 2) & 0x3FFFFFF
        case 275 | 311:  # ADR_PREL_PG_HI21, ADR_GOT_PAGE
            full += 16 if kind == 311 else 0
            delta = (full >> 12) - ((base + place) >> 12)
            word |= (delta & 3) << 29 | ((delta >> 2) & 0x7FFFF) << 5
        case 277 | 278 | 284 | 285 | 286 | 299:  # ADD / LDST8, 16, 32, 64, 128 _ABS_LO12_NC
            shift = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}[kind]
            word |= ((full & 0xFFF) >> shift) << 10
        case 312:  # LD64_GOT_LO12_NC
            word |= (((full + 16) & 0xFFF) >> 3) << 10
        case _:
            raise KeyError(kind)
    struct.pack_into("<I", code, place, word)


_RELOCATE: dict[str, Callable[[memoryview, int, int, int, int, int, bool], None]] = {"x86_64": _relocate_x86, "aarch64": _relocate_arm}


def _damaged(key: str) -> RuntimeFault:
    return RuntimeFault(f"link: object {key} must be an ELF relocatable file, and is damaged", code="object-damaged")
