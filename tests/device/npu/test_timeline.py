"""Tasks in a row: order, gaps, hosts that are too slow, intervals, and what is said to hold the whole back."""

import math

import pytest

from jumar.base import DeviceError, f16
from jumar.device.npu import AI_CPU, COMMUNICATION, CUBE, HOST, VECTOR, Operand, Prediction, Task, find_chip, timeline
from jumar.device.npu.timeline import AI_CPU_STREAM, HOST_STREAM, MAIN

CHIP = find_chip("Ascend910B4")
X = Operand((16, 16), f16)


def task(core=VECTOR, kind="Add"):
    return Task(kind, (X, X), (X,), core=core)


def takes(us, bottleneck="vector", spread=0.2):
    return Prediction(us, us * (1 - spread), us * (1 + spread), bottleneck, {bottleneck: us})


def test_a_sunk_graph_runs_back_to_back_and_is_bound_by_its_kernels():
    line = timeline([task()] * 10, [takes(50.0)] * 10, CHIP)
    assert [s.stream for s in line.spans] == [MAIN] * 10
    assert all(math.isclose(b.start_us - a.end_us, 1.0) for a, b in zip(line.spans, line.spans[1:]))
    assert line.busy_us == pytest.approx(500)
    assert line.latency_us == pytest.approx(500 + 9 + 25)
    assert (line.bound, line.spans[0].cause, line.spans[5].cause) == ("vector-bound", "round trip", "gap")


def test_an_eager_step_of_short_kernels_is_host_bound_and_one_of_long_kernels_is_not():
    short, long = (
        timeline([task()] * 20, [takes(5.0)] * 20, CHIP, mode="eager"),
        timeline([task()] * 20, [takes(500.0)] * 20, CHIP, mode="eager"),
    )
    assert short.bound == "host-bound" and short.latency_us > 20 * 30
    assert short.busy < 0.2 and short.spans[10].cause == "host"
    assert long.bound == "vector-bound" and long.busy > 0.95
    assert short.latency_us > timeline([task()] * 20, [takes(5.0)] * 20, CHIP, mode="stepwise").latency_us


def test_waits_and_busy_time_are_the_latency():
    tasks = [task(), task(AI_CPU, "Unique"), task(HOST, "Where"), task(CUBE, "MatMulV2"), task(COMMUNICATION, "hcom_allReduce_")]
    times = [takes(5), takes(80, "ai cpu"), takes(30, "host"), takes(20, "cube"), takes(60, "communication")]
    for mode in ("sunk", "stepwise", "eager"):
        line = timeline(tasks, times, CHIP, mode=mode)
        assert line.busy_us + sum(line.waits_us.values()) == pytest.approx(line.latency_us)
        assert line.low_us < line.latency_us < line.high_us


def test_a_task_on_the_host_stops_the_device():
    line = timeline([task(), task(HOST, "Where"), task()], [takes(5), takes(1000, "host"), takes(5)], CHIP)
    assert line.spans[1].stream == HOST_STREAM and line.spans[1].cause == "round trip"
    assert line.spans[2].start_us > line.spans[1].end_us
    assert (line.bound, line.critical) == ("host-bound", 2)
    assert line.gaps(1) == [line.spans[2]] and line.top(1) == [line.spans[1]]
    assert "host-bound" in line.text and "predicted" in line.text


def test_a_collective_overlaps_what_does_not_read_it():
    tasks = [task(), task(COMMUNICATION, "hcom_allReduce_"), task(), task()]
    times = [takes(10), takes(500, "communication"), takes(400), takes(10)]
    apart = timeline(tasks, times, CHIP, reads=[(), (0,), (0,), (1, 2)])
    chain = timeline(tasks, times, CHIP)
    assert apart.latency_us == pytest.approx(chain.latency_us - 400, abs=5)
    assert apart.busy_us < sum(t.time_us for t in times)


def test_an_ai_cpu_kernel_has_a_stream_of_its_own():
    line = timeline([task(), task(AI_CPU, "Unique"), task()], [takes(5), takes(80, "ai cpu"), takes(5)], CHIP, reads=[(), (0,), (0,)])
    assert line.spans[1].stream == AI_CPU_STREAM and line.spans[2].start_us < line.spans[1].end_us


def test_errors_of_many_kernels_cancel_in_part_only():
    def width(tasks):
        line = timeline(tasks, [takes(1000.0 / len(tasks))] * len(tasks), CHIP)
        return (line.high_us - line.low_us) / line.latency_us

    one, same = width([task()]), width([task()] * 100)
    shapes = width([Task("Add", (Operand((16, i), f16),), (X,), core=VECTOR) for i in range(100)])
    kinds = width([task(kind=f"K{i}") for i in range(100)])
    assert one == pytest.approx(same, rel=0.15), "the same kernel errs the same way each time"
    assert same > 1.3 * shapes > 1.5 * kinds > 0.3 * one


def test_throughput_hides_the_round_trip():
    line = timeline([task()] * 10, [takes(50.0)] * 10, CHIP)
    rate, low, high = line.throughput(batch=4)
    assert low < rate < high and rate > 4e6 / line.latency_us
    assert rate == pytest.approx(4e6 / (line.latency_us - 25), rel=0.03)


def test_the_host_of_a_310_is_farther_away():
    assert timeline([task()], [takes(5)], find_chip("310P3")).latency_us > timeline([task()], [takes(5)], CHIP).latency_us + 40


def test_nothing_takes_no_time():
    line = timeline((), (), CHIP)
    assert (line.latency_us, line.low_us, line.high_us, line.bound, line.critical) == (0.0, 0.0, 0.0, "", None)


def test_an_unknown_mode_is_named():
    with pytest.raises(DeviceError, match="mode must be one of sunk, stepwise, eager, got 'sink'") as error:
        timeline((), (), CHIP, mode="sink")
    assert error.value.hint == "did you mean sunk?" and error.value.code == "npu-mode"
