"""The hardware: the CPU is there, others are not, and there is nothing to wait for."""

from __future__ import annotations

import pytest

from jumar import hal
from jumar.device_context import ascend, cpu, gpu


def test_devices() -> None:
    assert [hal.is_available(d) for d in ("CPU", "Ascend", "GPU")] == [True, False, False]
    assert (hal.device_count(), hal.device_count("Ascend"), hal.get_device_name(0)) == (1, 0, "CPU")
    assert hal.get_device_properties(0)["cores"] >= 1
    with pytest.raises(ValueError, match="device_target must be one of"):
        hal.is_available("TPU")


def test_memory_is_the_process_s() -> None:
    assert 0 < hal.memory_allocated() <= hal.max_memory_allocated() * 2
    assert "MiB" in hal.memory_summary()


def test_streams_and_events() -> None:
    first, second = hal.Event(enable_timing=True), hal.Event(enable_timing=True)
    with hal.StreamCtx(hal.current_stream()):
        first.record()
        second.record(hal.default_stream())
    assert first.elapsed_time(second) >= 0
    assert hal.Stream().query()
    assert hal.Stream() == hal.current_stream()
    with pytest.raises(TypeError, match="ctx_stream must be a Stream"):
        hal.StreamCtx(3)


def test_switches_of_absent_devices_raise() -> None:
    assert (cpu.is_available(), ascend.is_available(), gpu.is_available()) == (True, False, False)
    with pytest.raises(RuntimeError, match="Device Ascend not exist"):
        ascend.device_count()
    with pytest.raises(RuntimeError, match="precision_mode: a device must be there"):
        ascend.op_precision.precision_mode("force_fp16")
    with pytest.raises(AttributeError, match="has no switch 'x'"):
        _ = ascend.op_precision.x
