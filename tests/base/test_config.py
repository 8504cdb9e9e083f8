"""Settings: one place, read from the environment at each access."""

import pytest

from jumar.base import SETTINGS, StackError, config


def test_the_environment_overrides_the_default(monkeypatch):
    monkeypatch.setenv("JUMAR_THREADS", "3")
    assert 3 == config("threads")


def test_a_wrong_value_names_the_variable(monkeypatch):
    monkeypatch.setenv("JUMAR_THREADS", "many")
    with pytest.raises(StackError, match="JUMAR_THREADS must be int, got 'many'"):
        config("threads")


def test_an_unknown_setting_lists_the_nearest():
    with pytest.raises(StackError, match="did you mean threads"):
        config("thread")


def test_mindspores_pair_of_variables_saves_graphs_too(monkeypatch, tmp_path):
    monkeypatch.setenv("MS_DEV_SAVE_GRAPHS", "1")
    monkeypatch.setenv("MS_DEV_SAVE_GRAPHS_PATH", str(tmp_path))
    assert str(tmp_path) == config("save_graphs")
    monkeypatch.setenv("MS_DEV_SAVE_GRAPHS", "0")
    assert "" == config("save_graphs")


def test_every_setting_says_what_it_means():
    assert all(len(s.meaning) > 10 for s in SETTINGS.values())
