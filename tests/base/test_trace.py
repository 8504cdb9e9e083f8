"""Spans and events reach whoever records, and nobody else."""

from jumar.base import event, recording, span


def test_a_recording_holds_spans_with_their_depth_and_events():
    with recording() as record, span("outer", n=1) as facts:
        facts["after"] = 2
        with span("inner"):
            event("fold", count=3)
    assert [("outer", 0), ("inner", 1)] == [(s.name, s.depth) for s in record.spans]
    assert {"n": 1, "after": 2} == record.spans[0].facts
    assert [("fold", {"count": 3})] == [(e.name, e.facts) for e in record.events]
    assert record.seconds("outer") >= record.seconds("inner") >= 0


def test_without_a_recording_nothing_is_kept():
    with span("alone") as facts:
        facts["x"] = 1
        event("ignored")


def test_a_recording_inside_another_gives_it_what_it_noted():
    with recording() as outer, span("a"), recording() as inner, span("b"):
        event("c", count=1)
    assert [s.name for s in inner.spans] == ["b"]
    assert [(s.name, s.depth) for s in outer.spans] == [("a", 0), ("b", 1)]
    assert [e.name for e in outer.events] == ["c"]
