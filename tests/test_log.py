"""Log messages go to stderr, filtered by GLOG_v."""

from __future__ import annotations

import pytest

from jumar import log


def test_messages_below_the_level_are_not_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GLOG_v", "2")
    log.info("not shown")
    log.warning("epoch %d", 3)
    assert capsys.readouterr().err == "[WARNING] test_log.py:13 epoch 3\n"
    monkeypatch.setenv("GLOG_v", "1")
    log.info("shown")
    assert "[INFO] test_log.py:16 shown" in capsys.readouterr().err
    assert log.get_level() == "1"
    assert log.get_log_config()["GLOG_v"] == "1"


def test_an_action_is_logged_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GLOG_v", "2")
    monkeypatch.setattr(log._LogActionOnce, "is_logged", {})

    @log._LogActionOnce(logger=log, key="once")
    def act() -> int:
        return 1

    assert (act(), act()) == (1, 1)
    assert capsys.readouterr().err.count("act: once") == 1
