"""What breaks the format of rules is told once, with the file, the rule and the key; what could never be found, or finds everything, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.tools.helpers import jumar
from tests.tools.knowledge.test_rule import SHOWN

from jumar.base import ToolError, told
from jumar.tools.knowledge import FACT, Rule, load_rules
from jumar.tools.knowledge.facts_known import is_known, known_facts
from jumar.tools.knowledge.load import OURS

RULE = "mine.toml: rule 'license-server-away': "


def written(folder: Path, text: str) -> tuple[Rule, ...]:
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return load_rules([folder])


def refused(folder: Path, old: str, new: str) -> ToolError:
    assert old in SHOWN
    changed = SHOWN.replace(old, new, 1)
    for _ in range(2):  # no error is kept in the cache
        with pytest.raises(ToolError) as error:
            written(folder, changed)
    assert re.search("[\u4e00-\u9fff]", told(error.value.what, "zh"))
    return error.value


@pytest.mark.parametrize(
    "old, new, says",
    [
        ('layer = "framework_usage"', 'layer = "framwork_usage"', "layer must be one of"),
        ('layer = "framework_usage"', 'layer = ["framework_usage"]', "layer must be a text, got ['framework_usage']"),
        ('tier = "cause" ', 'tier = "certain" ', "tier must be one of"),
        ('tier = "cause" ', "tier = 1 ", "tier must be a text, got 1"),
        ('stack = "application" ', "", "stack must be a text, got nothing"),
        ("match = [", "matches = [", "keys must be known, got 'matches'"),
        ('source = "our', 'sauce = "our', "keys must be known, got 'sauce'"),
        ('cause = "license_server_unreachable"', "cause = 3", "cause must be a text, got 3"),
        ("with = ['checkout']", "with = 'checkout'", "with must be a list of texts, got 'checkout'"),
        ("with = ['checkout']", "with = [5]", "with must hold texts, got 5"),
        ("without = ['license found in cache']", "without = {a = 1}", "without must be a list of texts, got {'a': 1}"),
        ('explains = ["hint-*"]', 'explains = "hint-*"', "explains must be a list of texts, got 'hint-*'"),
        ("seen = []", "seen = [['F1']]", "seen must hold texts, got ['F1']"),
        ("seen = []", 'rank = "x"', "rank must be a whole number, got 'x'"),
        ("seen = []", "rank = 1.5", "rank must be a whole number, got 1.5"),
        ("seen = []", "rank = true", "rank must be a whole number, got True"),
        ('zh.what = "', 'zh.wat = "', "zh must hold what, fix, next, got 'wat'"),
        ("en.fix = [", 'en.fix = "one" #', "en.fix must be a list of texts, got 'one'"),
        ('en.fix = ["', 'en.fix = [7, "', "en.fix must hold texts, got 7"),
        ("seen = []", "en.next = 4", "en.next must be a text, got 4"),
    ],
)
def test_a_key_of_the_wrong_kind_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert refused(tmp_path, old, new).what.startswith(RULE + says)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_language_that_is_missing_is_named(tmp_path: Path, lang: str) -> None:
    without = "\n".join(line for line in SHOWN.splitlines() if not line.startswith(f"{lang}."))
    with pytest.raises(ToolError, match=re.escape(f"{RULE}{lang} must hold what and fix, got nothing")):
        written(tmp_path, without)
    with pytest.raises(ToolError, match=re.escape(f"{RULE}{lang} must hold what and fix, got 'text'")):
        written(tmp_path, without + f'\n{lang} = "text"')


@pytest.mark.parametrize(
    "old, new, says",
    [
        ('name = "license-server-away"', "name = 5", "mine.toml: rule 1: name must be a text, got 5"),
        ('name = "license-server-away"', "", "mine.toml: rule 1: name must be a text, got nothing"),
        ('name = "license-server-away"', 'name = "License Server"', "mine.toml: rule 'License Server': name must be lower case words"),
        ('name = "license-server-away"', 'name = "license_server"', "mine.toml: rule 'license_server': name must be lower case words"),
        ("[[rule]]", "[[rule]", "mine.toml: must be TOML"),
        ("[[rule]]", "[rule]", "mine.toml: rule must be a list of tables, got a table"),
        ("[[rule]]", "[[rules]]", "mine.toml: must hold rules only, got the key 'rules'"),
        ("[[rule]]", "colour = 1\n[[rule]]", "mine.toml: must hold rules only, got the key 'colour'"),
    ],
)
def test_a_rule_without_a_name_and_a_file_without_rules_are_told(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert refused(tmp_path, old, new).what.startswith(says)


@pytest.mark.parametrize("text", ["rule = 5", 'rule = "x"', "rule = [1, 2]", "rule = true"])
def test_a_file_whose_rule_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ToolError, match=r"mine.toml: rule must be a list of tables, got "):
        written(tmp_path, text)


def test_a_file_that_is_not_utf_8_is_refused_and_a_byte_order_mark_is_none_of_its_text(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe bad")
    with pytest.raises(ToolError, match=r"mine\.toml: must be UTF-8, got byte 0xff at 0"):
        load_rules([tmp_path])
    assert written(tmp_path, "\ufeff" + SHOWN)[0].name == "license-server-away"


@pytest.mark.parametrize(
    "new, says",
    [
        ("''", "with must hold texts, got ''"),
        ("'x*'", "with must not find every line, got 'x*'"),
        ("'.'", "with must not find every line, got '.'"),
        ("'checkout|'", "with must not find every line, got 'checkout|'"),
        (r"'^'", "with must not find every line, got '^'"),
        ("'(unclosed'", "with must be RE2 syntax (no lookaround, no backreference), got '(unclosed'"),
        ("'(?<=x)y'", "with must be RE2 syntax (no lookaround, no backreference), got '(?<=x)y'"),
        ("'code:banana'", "with must name a code as the table does, got 'code:banana'"),
        ("'code:0x7bc8a'", "with must name a code as the table does, got 'code:0x7bc8a'"),
        ("'code:ez9999'", "with must name a code as the table does, got 'code:ez9999'"),
        ("'code:moon:87'", "with must name a family that there is, got 'code:moon:87'"),
        ("'code:EI00*'", "with must name a code's beginning by two or three capitals or digits, got 'code:EI00*'"),
        ("'code:'", "with must name a code as the table does, got 'code:'"),
        ("'fact:nonexist'", "with must ask for a fact that there is, got 'fact:nonexist'"),
        ("'fact:shm-smal'", "with must ask for a fact that there is, got 'fact:shm-smal'"),
        ("'fact:mindspoer-version'", "with must ask for a fact that there is, got 'fact:mindspoer-version'"),
    ],
)
@pytest.mark.parametrize("key", ["with", "without", "match"])
def test_what_could_never_be_found_or_finds_every_line_is_refused(tmp_path: Path, key: str, new: str, says: str) -> None:
    old = {"with": "with = ['checkout']", "without": "without = ['license found in cache']", "match": "match = ["}[key]
    added = f"match = [{new}, " if key == "match" else f"{key} = [{new}]"
    assert refused(tmp_path, old, added).what.startswith(RULE + says.replace("with ", f"{key} ", 1))


def test_a_hint_says_how_a_code_and_a_fact_are_written(tmp_path: Path) -> None:
    assert refused(tmp_path, "['checkout']", "['code:0x7bc8a']").hint == "write code:507018"
    assert refused(tmp_path, "['checkout']", "['fact:shm-smal']").hint == "did you mean shm-small?"


@pytest.mark.parametrize(
    "entry", ["code:507018", "code:drv:87", "code:EI*", "code:507*", "fact:shm-small", "fact:pairing-*side-cann-driver"]
)
def test_codes_and_facts_that_there_are_pass(tmp_path: Path, entry: str) -> None:
    assert entry in written(tmp_path, SHOWN.replace("['checkout']", f"['{entry}']"))[0].also


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("{server:of the cluster}", "{nogroup:x}", "en.what must use groups of its patterns, got {nogroup:...}"),
        ("{server:of the cluster}", "{server:of the cluster", "en.what must close its braces, got "),
        ("{server:of the cluster}", "server} of the cluster", "en.what must close its braces, got "),
        ("{server:of the cluster}", "{server} of the cluster", "en.what must give {server} a fallback in lower case, got "),
        ("{server:of the cluster}", "{Server:x}", None),
        ("{server:SERVER}", "{sever:SERVER}", "run must use groups of its patterns, got {sever:...}"),
        ('en.fix = ["Open', 'en.fix = ["{port:1} Open', "en.fix must use groups of its patterns, got {port:...}"),
        ("{server:（集群）}", "{servers:（集群）}", "zh.what must use groups of its patterns, got {servers:...}"),
    ],
)
def test_a_placeholder_that_nothing_fills_is_refused(tmp_path: Path, old: str, new: str, says: str | None) -> None:
    if says is None:  # braces of another language, such as JSON, stay as they are
        assert new in written(tmp_path, SHOWN.replace(old, new, 1))[0].texts["en"].what
    else:
        assert refused(tmp_path, old, new).what.startswith(RULE + says)


def test_braces_of_commands_and_of_json_are_no_placeholders(tmp_path: Path) -> None:
    run = """run = ['''hostname -I | awk '{print $1}' && echo "${HOME}" '{"a": {"b": 1}}' {{.Name}}''']"""
    assert "awk" in written(tmp_path, SHOWN.replace('run = ["nc -vz {server:SERVER} 27000"]', run))[0].run[0]


def test_our_own_rules_pass_what_is_asked_of_others() -> None:
    from jumar.tools.knowledge.format import check_patterns

    check_patterns(load_rules([OURS]), known_facts(file.read_bytes() for file in OURS.glob("*.toml")))


def test_every_fact_that_the_code_states_is_known() -> None:
    tools = OURS.parents[1]
    known = known_facts(file.read_bytes() for file in OURS.glob("*.toml"))
    stated = {
        name
        for file in (*tools.glob("doctor/**/*.py"), *tools.glob("diagnose/*.py"))
        for name in re.findall(r"\b[Ff]act\(\s*\"([^\"{}]+)\"", file.read_text(encoding="utf-8"))
    }
    assert len(stated) > 60
    assert [] == sorted(name for name in stated if not is_known(name, known))
    assert all(is_known(p.removeprefix(FACT), known) for rule in load_rules() for p in rule.match if p.startswith(FACT))


def test_two_files_of_one_name_are_told_apart_and_a_name_twice_names_both(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.toml").write_text(SHOWN, encoding="utf-8")
    with pytest.raises(ToolError) as error:
        load_rules([tmp_path / "a", tmp_path / "b"])
    assert str(tmp_path / "b" / "mine.toml") in error.value.what
    assert f"name must be unique, got that of a rule in {tmp_path / 'a' / 'mine.toml'}" in error.value.what


def test_jumar_rules_is_a_list_of_folders_and_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine.toml").write_text(SHOWN, encoding="utf-8")
    (tmp_path / "other.toml").write_text(SHOWN.replace("license-", "token-").replace("license server", "token server"), encoding="utf-8")
    (tmp_path / "a.log").write_text("checkout failed: license server lic01 unreachable\n")
    (tmp_path / "b.log").write_text("checkout failed: token server tok01 refused\n")

    def cause(log: str, rules: str) -> str:
        return jumar("diagnose", log, "--lang", "en", cwd=tmp_path, JUMAR_RULES=rules).stdout

    assert "The license server lic01 does not answer" in cause("a.log", "a:other.toml")
    assert "The token server tok01 does not answer" in cause("b.log", "a:other.toml")
    assert "The token server tok01 does not answer" in cause("b.log", "other.toml:")
    assert "The license server lic01 does not answer" in cause("a.log", "a:a/mine.toml")  # once, though named twice


@pytest.mark.parametrize(
    "rules, says",
    [
        ("nowhere", "rules: folder or file must exist, got nowhere"),
        ("a:nowhere.toml", "rules: folder or file must exist, got nowhere.toml"),
        ("a.log", "rules: file must end in .toml, got a.log"),
        ("empty", "rules: folder must hold *.toml files, got none in empty"),
    ],
)
def test_a_place_without_rules_is_named(tmp_path: Path, rules: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "empty"):
        Path(folder).mkdir()
    Path("a/mine.toml").write_text(SHOWN, encoding="utf-8")
    Path("a.log").write_text("")
    monkeypatch.setenv("JUMAR_RULES", rules)
    with pytest.raises(ToolError, match=re.escape(says)):
        load_rules()
