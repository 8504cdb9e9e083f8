"""A Program is text, bytes and back; what is damaged is refused, and never runs."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace

import numpy as np
import pytest

from jumar.base import RuntimeFault, TensorType, bf16, f32
from jumar.runtime import HostStep, KernelRef, Program, Ref, Step, View, bits, check, dump, load
from tests.runtime.programs import chain, kernels


def test_a_program_prints_one_line_a_step() -> None:
    assert str(chain(2)).splitlines() == [
        "program chain (x: f32[64]) -> (y: f32[64])",
        f"  # 1 kernels {len(kernels()['scaled'])} B, constants 256 B, arena 512 B, scratch 0 B",
        "  0: scaled x8 (input:0, constant, arena, 1073741824, 8)  # step0 net.py:0",
        "  1: scaled x8 (arena, constant, output:0, 1073741824, 8)  # step1 net.py:1",
    ]


def _rich() -> Program:
    program = chain(3)
    type = TensorType((64,), f32)
    host = HostStep("relu", (View(Ref("arena"), type),), (View(Ref("arena"), type),), "act", "net.py:9")
    call = Step("scaled", (KernelRef("scaled"), -1, 1 << 63), 0, barrier=False, serial=True)
    return replace(program, steps=(*program.steps, host, call), scratch_nbytes=128)


def test_load_gives_what_was_dumped() -> None:
    program = _rich()
    again = load(dump(program))
    assert again == program
    np.testing.assert_array_equal(again.constants, program.constants)
    assert again.constants.ctypes.data % 64 == 0
    assert dump(again) == dump(program)


def test_no_flipped_bit_passes_and_none_crashes() -> None:
    raw = dump(chain(2))
    chooser = random.Random(0)
    places = {*range(80 * 8), *(chooser.randrange(8 * len(raw)) for _ in range(3000))}
    accepted, codes = 0, set()
    for bit in sorted(places):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            again = load(bytes(changed))
        except RuntimeFault as error:
            codes.add(error.code)
        else:
            accepted += 1  # padding between the parts means nothing
            assert dump(again) == raw
    assert codes == {"program-damaged"}
    assert accepted < 200


@pytest.mark.parametrize("cut", [0, 1, 19, 100, 500])
def test_a_shortened_file_is_refused(cut: int) -> None:
    with pytest.raises(RuntimeFault, match="must be whole"):
        load(dump(chain(2))[:cut])


def test_a_header_that_lies_is_refused_even_with_the_right_checksum() -> None:
    raw = dump(chain(2))
    for old, new in (
        (b'"arena",0', b'"arena",9'),
        (b'"input:0"', b'"input:7"'),
        (b'"kernels":["scaled"]', b'"kernels":["scalex"]'),
        (b'"arena":512', b'"arena":-12'),
    ):
        changed = raw.replace(old, new)
        assert changed != raw and len(changed) == len(raw)
        length = int.from_bytes(raw[8:16], "little")
        changed = changed[:16] + zlib.crc32(changed[20 : 20 + length]).to_bytes(4, "little") + changed[20:]
        if new == b'"arena",9':
            assert isinstance(load(changed), Program)  # a place inside the arena
            continue
        with pytest.raises(RuntimeFault):
            load(changed)


def test_check_refuses_places_outside_their_space_and_unknown_kernels() -> None:
    program = chain(1)
    step = program.steps[0]
    assert isinstance(step, Step)
    for arg, words in ((Ref("arena", 513), "must lie in 512 bytes"), (Ref("output:1"), "one of arena"), (KernelRef("gemm"), "got gemm")):
        with pytest.raises(RuntimeFault, match=words):
            check(replace(program, steps=(replace(step, args=(arg,)),)))
    with pytest.raises(RuntimeFault, match="chunks must be >= 0"):
        check(replace(program, steps=(replace(step, chunks=-1),)))
    big = View(Ref("arena"), TensorType((129,), f32))
    with pytest.raises(RuntimeFault, match="must lie in 512 bytes"):
        check(replace(program, steps=(HostStep("relu", (big,), ()),)))


def test_bits_are_the_low_bytes_of_a_word() -> None:
    assert bits(1.0, f32) == 0x3F800000 and bits(1.0, bf16) == 0x3F80
