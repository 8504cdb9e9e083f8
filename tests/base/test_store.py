"""The store gives what was put, and nothing else."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from jumar.base import Store, seal, unseal
from jumar.base.store import checksum

KEY = "ab" * 32


def test_get_gives_what_was_put(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.get(KEY) is None
    store.put(KEY, b"code")
    assert store.get(KEY) == b"code"
    store.put(KEY, b"")
    assert store.get(KEY) == b""


@pytest.mark.parametrize("damage", ["flip", "cut", "grow", "foreign", "empty"])
def test_a_damaged_entry_counts_as_absent_and_is_removed(damage: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEY, bytes(range(256)))
    path = store.path(KEY)
    raw = path.read_bytes()
    changed = {"flip": raw[:-9] + b"!" + raw[-8:], "cut": raw[:-1], "grow": raw + b"x", "foreign": b"PK\x03\x04" + raw, "empty": b""}[
        damage
    ]
    path.write_bytes(changed)
    assert store.get(KEY) is None and not path.exists()


def test_every_flipped_bit_of_a_header_is_seen() -> None:
    raw = seal(b"hello")
    assert unseal(raw) == b"hello"
    for bit in range(8 * len(raw)):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        assert unseal(bytes(changed)) is None


def test_the_least_recently_used_entries_go_when_the_cap_is_reached(tmp_path: Path) -> None:
    store = Store(tmp_path, cap_gb=10_000 / (1 << 30))
    for i in range(20):
        key = f"{i:02x}" * 32
        store.put(key, bytes(1000))
        os.utime(store.path(key), (i, i))
    store.sweep()
    kept = [i for i in range(20) if store.get(f"{i:02x}" * 32) is not None]
    assert kept == list(range(kept[0], 20)) and 5 <= len(kept) <= 9


def test_writers_in_many_threads_do_not_disturb_readers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    body = bytes(100_000)

    def work(i: int) -> bool:
        store.put(KEY, body)
        return store.get(KEY) == body

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [KEY]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    store = Store(blocked)
    store.put(KEY, b"code")
    assert store.get(KEY) is None


def test_what_was_put_in_pieces_is_read_as_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for sizes in ((0, 5, 0), (4096, 4096), (1 << 20, 1), (100, 3_000_000, 7, 1 << 20, 5000), (4095, 2 << 20, 4097)):
        parts = [rng.bytes(n) for n in sizes]
        store = Store(tmp_path)
        store.put("ab", *parts)
        assert b"".join(parts) == store.get("ab")
        assert checksum(*parts) == checksum(b"".join(parts))


def test_what_is_put_later_is_there_for_whoever_asks(tmp_path: Path) -> None:
    body = np.random.default_rng(0).bytes(20_000_000)
    store = Store(tmp_path)
    store.put_later("ab", body)
    assert body == store.get("ab")
    store.put_later("ac", body)
    found = store.read_into("ac", lambda nbytes: np.zeros(nbytes, np.uint8))
    assert found is not None and body == bytes(found)
