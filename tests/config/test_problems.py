from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from fileipc.config import document
from fileipc.config.load import load
from fileipc.errors import ConfigError, FileipcError, Problem

from .yaml_files import loaded, only_problem, problems, root_problem, root_text, write


@pytest.fixture(autouse=True, params=["default", "python"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fault must read the same with and without the C library."""
    if request.param == "python":
        monkeypatch.setattr(document, "LOADER", yaml.SafeLoader)


def test_a_problem_reads_as_file_line_key_and_a_suggestion() -> None:
    problem = Problem("c.yaml", 3, "roots[0].workes", "unknown key", "workers")
    assert str(problem) == "c.yaml:3: roots[0].workes: unknown key; did you mean workers?"
    assert str(Problem("c.yaml", None, "", "is empty")) == "c.yaml: is empty"
    error = ConfigError((problem, problem))
    assert str(error) == f"{problem}\n{problem}"
    assert isinstance(error, FileipcError)


def test_all_faults_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        """\
        version: 2
        defautls: {workers: 3}
        defaults:
          ttl: 5mins
        roots:
          - path: a/.ipc
            workers: many
            databases:
              default: {}
          - name: nameless
        log: {level: loud}
        """,
    )
    assert [(p.line, p.key, p.suggestion) for p in found] == [
        (1, "version", None),
        (2, "defautls", "defaults"),
        (4, "defaults.ttl", "5m"),
        (7, "roots[0].workers", None),
        (9, "roots[0].databases.default", None),
        (10, "roots[1].path", None),
        (11, "log.level", None),
    ]
    assert {p.file for p in found} == {str(tmp_path / "config.yaml")}


@pytest.mark.parametrize(
    ("keys", "key", "message", "suggestion"),
    [
        ("workrs: 4", "workrs", "unknown key", "workers"),
        ("stale-after: 1h", "stale-after", "unknown key", "stale_after"),
        ("Workers: 4", "Workers", "unknown key", "workers"),
        ("zzz: 4", "zzz", "known are path, name", None),
        ("workers: yes", "workers", "got yes (that is, true)", None),
        ("workers: '4'", "workers", "got the text '4'", "4"),
        ("workers: 0", "workers", "from 1 to 256, got 0", None),
        ("workers: 257", "workers", "from 1 to 256, got 257", None),
        ("workers: 4.0", "workers", "got the number 4.0", None),
        ("workers: 010", "workers", "not a plain decimal number", None),
        ("workers: 1_", "workers", "not a plain decimal number", None),
        ("workers: 1__0", "workers", "not a plain decimal number", None),
        ("workers: 1:30", "workers", "not a plain decimal number", None),
        ("workers:", "workers", "got nothing", None),
        ("workers: [4]", "workers", "got a list", None),
        ("workers: !!python/name:os.system x", "workers", "tagged", None),
        ("ttl: true", "ttl", "got true", None),
        ("ttl: -5", "ttl", "negative", None),
        ("ttl: -5s", "ttl", "negative", None),
        ("ttl: .nan", "ttl", "finite", None),
        ("ttl: .inf", "ttl", "finite", None),
        ("ttl: 1:30", "ttl", "not a plain decimal number", None),
        ("ttl: 0", "ttl", "from 100ms", None),
        ("ttl: 5 min", "ttl", "unknown unit 'min'", "5m"),
        ("ttl: {}", "ttl", "got a mapping", None),
        ("limits: {command: 1M}", "limits.command", "unknown unit 'M'", "1MiB"),
        ("limits: {command: 1.5}", "limits.command", "whole number of bytes", None),
        ("limits: {command: 9999GiB}", "limits.command", "from 1KiB to 1GiB", None),
        ("durability: powr", "durability", "process or power", "power"),
        ("mode: 5", "mode", "private or group", None),
        ("project_config: 1", "project_config", "true or false", None),
        ("name: 5", "name", "got the number 5", '"5"'),
        ("name: a/b", "name", "without /", None),
        ('name: "a\\nb"', "name", "control character", None),
        ("name: 2020-01-01", "name", "got the date", '"2020-01-01"'),
        ("path_: x", "path_", "unknown key", "path"),
        ("project: $HOME/x", "project", "variables are not expanded", "~/... or the whole path"),
        ("project: ~nobody-of-that-name/x", "project", "no such user", None),
        ("allow: ping", "allow", "expected a list", None),
        ("allow: [no]", "allow[0]", "got no (that is, false)", '"no"'),
        ("allow: [ping, 5]", "allow[1]", "got the number 5", '"5"'),
        ("allow: [sumarize]", "allow[0]", "neither a built-in type", None),
        ("allow: [ping, analyse_file]", "allow[1]", "neither a built-in", "analyze_file"),
        ("allow: [custom]", "allow[0]", "neither a built-in type", None),
        ("allow_users: [me, zzqqxx]", "allow_users[1]", "a user of this machine", None),
        ("allow_users: [roott]", "allow_users[0]", "a user of this machine", "root"),
        ("allow_users: [0]", "allow_users[0]", "got the number 0", '"0"'),
        ("allow_groups: [zzqqxx]", "allow_groups[0]", "a group of this", None),
        ("scripts: {allow: [../x.sh]}", "scripts.allow[0]", "relative to the project", None),
        ("scripts: {allow: [/x.sh]}", "scripts.allow[0]", "relative to the project", None),
        ("scripts: {allow: [a/..]}", "scripts.allow[0]", "relative to the project", None),
        ("scripts: {env: [A=b]}", "scripts.env[0]", "without its value", None),
        ("scripts: {memory: 1}", "scripts.memory", "from 16MiB", None),
        ("scripts:", "scripts", "expected a mapping", None),
        ("databases: {default: {}}", "databases.default", "either url or url_env", None),
        (
            "databases: {default: {url: 'sqlite:///x', url_env: X}}",
            "databases.default",
            "either url or url_env, not both",
            None,
        ),
        ("databases: {d: {url: app.db}}", "databases.d.url", "expected a URL", None),
        *(
            (f"databases: {{d: {{url: '{url}'}}}}", "databases.d.url", "sqlite:////PATH", None)
            for url in (
                "postgres://me:secret@host/db",
                "sqlite://data/x.db",
                "sqlite://",
                "sqlite:///",
                "sqlite:///:memory:",
                "sqlite:///x.db?mode=rw",
                "SQLite:///x.db",
            )
        ),
        ("databases: {a b: {url_env: X}}", "databases.a b", "the name must be", None),
        ("databases: {5: {url_env: X}}", "databases", "a key must be text", '"5"'),
        ("handlers: {x: {}}", "handlers.x", "either python or exec", None),
        (
            "handlers: {x: {python: 'a:b', exec: [c]}}",
            "handlers.x",
            "either python or exec, not both",
            None,
        ),
        ("handlers: {x: {python: a.b.c}}", "handlers.x.python", "module:function", "a.b:c"),
        ("handlers: {x: {python: ':f'}}", "handlers.x.python", "module:function", None),
        ("handlers: {x: {exec: []}}", "handlers.x.exec", "at least 1 item", None),
        ("handlers: {x: {exec: [a, 1]}}", "handlers.x.exec[1]", "got the number 1", '"1"'),
        ("handlers: {x: {exec: a b}}", "handlers.x.exec", "expected a list", None),
        ("handlers: {ping: {exec: [a]}}", "handlers.ping", "built-in type", None),
        ("handlers: {custom: {exec: [a]}}", "handlers.custom", "built-in type", None),
        ("handlers: {Make It: {exec: [a]}}", "handlers.Make It", "lower-case", "make_it"),
        ("handlers: {x: {python: 'a:b', env: [A]}}", "handlers.x.env", "env is for exec", None),
        (f"handlers: {{{'x' * 201}: {{exec: [a]}}}}", f"handlers.{'x' * 201}", "at most 200", None),
        (f"path_{'x' * 50}: y", f"path_{'x' * 50}", "unknown key; known are", None),
        ("handlers: {x: {mcp: {command: [a]}}}", "handlers.x.mcp", "not supported", None),
        ("retention: {archive: forever}", "retention.archive", "a number with a unit", None),
    ],
)
def test_a_wrong_key_of_a_root_is_named_with_what_was_expected(
    tmp_path: Path, keys: str, key: str, message: str, suggestion: str | None
) -> None:
    problem = root_problem(tmp_path, keys)
    assert problem.key == f"roots[0].{key}"
    assert problem.line == 3
    assert message in problem.message
    assert "secret" not in str(problem)
    assert problem.suggestion == suggestion


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the file is empty"),
        ("# nothing\n\n", 1, "the file is empty"),
        ("- a\n- b\n", 1, "expected a mapping (key: value), got a list"),
        ("hello", 1, "expected a mapping (key: value), got the text 'hello'"),
        ("null", 1, "expected a mapping (key: value), got nothing"),
        ("a: 1\n\tb: 2\n", 2, "a tab may not indent YAML"),
        ("roots:\n  - path: [a\nlog: 1\n", 3, "not valid YAML"),
        ("a: *nowhere\n", 1, "undefined alias"),
        ("version: 1\n---\nversion: 1\n", 2, "a second document"),
        ("version: 1\nname: a\x07b\n", 2, "control character U+0007"),
        ('version: "\\UFFFFFFFF"\n', None, "not valid YAML"),
        ("a: &a [*a]\n", 1, "contains its own alias"),
        ("[" * 500, 1, "nested deeper"),
        ("[" * 50_000, 1, "nest"),
        ("- " * 5000, 1, "nested deeper"),
        ("%YAML 7.0\n---\na: 1\n", 1, "not valid YAML"),
    ],
)
def test_a_file_that_is_no_configuration_at_all_is_told_with_its_line(
    tmp_path: Path, text: str, line: int | None, message: str
) -> None:
    found = problems(tmp_path, text)
    assert message in found[0].message
    if line is not None:
        assert found[0].line == line


def test_bytes_that_are_no_text_are_told_with_their_line(tmp_path: Path) -> None:
    problem = only_problem(tmp_path, b"version: 1\nroots: [{path: caf\xe9}]\n")
    assert problem.line == 2
    assert "byte 0xe9" in problem.message
    assert "UTF-8" in problem.message


def test_a_bomb_of_aliases_is_refused_before_it_goes_off(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    problem = only_problem(tmp_path, "\n".join(lines))
    assert "aliases make more than" in problem.message
    merges = ["a0: &a0 {x: 1}"]
    merges += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 60)]
    assert "aliases make more than" in only_problem(tmp_path, "\n".join(merges)).message


def test_a_file_of_a_megabyte_and_more_is_refused(tmp_path: Path) -> None:
    assert "larger than" in only_problem(tmp_path, b"#" * (1024 * 1024 + 1)).message


def test_a_key_that_stands_twice_is_told_at_the_second_place(tmp_path: Path) -> None:
    problem = root_problem(tmp_path, "ttl: 1m\nworkers: 1\nttl: 2m")
    assert (problem.line, problem.key) == (5, "roots[0].ttl")
    assert "first on line 3" in problem.message


def test_a_merge_of_what_is_no_mapping_is_refused(tmp_path: Path) -> None:
    problem = root_problem(tmp_path, "<<: [5]")
    assert problem.key == "roots[0].<<"
    assert "expected a mapping" in problem.message


def test_a_missing_path_is_told_at_its_root(tmp_path: Path) -> None:
    problem = only_problem(tmp_path, "roots:\n  - path: a\n  - name: b\n")
    assert (problem.line, problem.key) == (3, "roots[1].path")


def test_a_file_without_roots_is_refused(tmp_path: Path) -> None:
    assert only_problem(tmp_path, "version: 1").key == "roots"
    assert "at least 1" in only_problem(tmp_path, "roots: []").message


@pytest.mark.parametrize("version", ["2", "0", "'1'", "1.0", "true", "latest"])
def test_an_unknown_version_is_refused(tmp_path: Path, version: str) -> None:
    problem = only_problem(tmp_path, f"version: {version}\nroots: [{{path: a}}]")
    assert "unknown version: expected 1" in problem.message


def test_the_same_root_by_another_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a" / ".ipc").mkdir(parents=True)
    (tmp_path / "b").symlink_to(tmp_path / "a")
    problem = only_problem(tmp_path, "roots:\n  - path: a/.ipc\n  - path: b/.ipc\n    name: x\n")
    assert (problem.line, problem.key) == (3, "roots[1].path")
    assert "the same folder as roots[0] (line 2)" in problem.message


def test_a_root_inside_the_ipc_folder_of_another_is_refused(tmp_path: Path) -> None:
    problem = only_problem(
        tmp_path, "roots:\n  - path: a/.ipc/b/.ipc\n  - path: a/.ipc\n    name: x\n"
    )
    assert (problem.line, problem.key) == (2, "roots[0].path")
    assert "inside the .ipc folder of roots[1] (line 3)" in problem.message


def test_a_root_inside_the_project_of_another_is_fine(tmp_path: Path) -> None:
    assert len(loaded(tmp_path, "roots: [{path: a/.ipc}, {path: a/b/.ipc}]").roots) == 2


def test_a_project_inside_an_ipc_folder_is_refused(tmp_path: Path) -> None:
    problem = root_problem(tmp_path, "project: shop/.ipc")
    assert problem.key == "roots[0].project"


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("{path: y/shop}", "give one of them a name"),
        ("{path: b, name: shop}", "already the name of roots[0]"),
        ("{path: b, name: Shop}", "but for its case: shop"),
    ],
)
def test_two_roots_of_one_name_are_refused(tmp_path: Path, second: str, said: str) -> None:
    problem = only_problem(tmp_path, f"roots:\n  - path: x/shop\n  - {second}\n")
    assert (problem.line, problem.key) == (3, "roots[1].name")
    assert said in problem.message


def test_a_root_key_at_the_top_is_told_where_it_belongs(tmp_path: Path) -> None:
    problem = only_problem(tmp_path, "workers: 4\nroots: [{path: a}]")
    assert problem.message == "belongs in a root or in defaults"


def test_a_path_in_the_defaults_is_refused(tmp_path: Path) -> None:
    problem = only_problem(tmp_path, "defaults: {path: a}\nroots: [{path: a}]")
    assert problem.message == "belongs in a root, not in defaults"


def test_a_fault_in_the_defaults_is_told_once_however_many_roots_there_are(tmp_path: Path) -> None:
    text = "defaults: {workers: x, allow: [pong]}\nroots: [{path: a}, {path: b}, {path: c}]"
    assert [p.key for p in problems(tmp_path, text)] == ["defaults.workers", "defaults.allow[0]"]


def test_a_fault_behind_an_alias_is_told_where_the_alias_stands(tmp_path: Path) -> None:
    text = "defaults:\n  ttl: &t never\nroots:\n  - path: a\n    stale_after: *t\n"
    assert [(p.line, p.key) for p in problems(tmp_path, text)] == [
        (2, "defaults.ttl"),
        (5, "roots[0].stale_after"),
    ]


def test_a_password_stays_out_of_the_message(tmp_path: Path) -> None:
    problem = root_problem(tmp_path, 'databases: {d: {url: "u:secret@host"}}')
    assert "secret" not in str(problem)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(str(tmp_path))
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("name", ["fifo", "/dev/null"])
def test_what_is_no_file_is_told_and_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ConfigError, match="is not a regular file"):
        load(str(tmp_path / name))


@pytest.mark.parametrize("key", ["path", "project"])
def test_a_folder_that_can_never_be_is_told(tmp_path: Path, key: str) -> None:
    (tmp_path / "file").write_text("")
    for path, said in (
        ("file", "file is not a folder"),
        ("file/sub/deeper", "file is not a folder"),
        ("é" * 128, "a part of 256 bytes"),
        ("/".join(["x" * 200] * 20), "a path of "),
    ):
        text = f"roots: [{{path: {path}}}]" if key == "path" else root_text(f"project: {path}")
        found = [problem for problem in problems(tmp_path, text) if said in problem.message]
        assert [problem.key for problem in found] == [f"roots[0].{key}"]


def test_an_ipc_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / ".ipc").write_text("")
    assert "is not a folder" in only_problem(tmp_path, "roots: [{path: .ipc}]").message


def test_a_folder_that_is_merely_missing_is_fine(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    text = f"roots: [{{path: a/b/c}}, {{path: link/d}}, {{path: {'x' * 255}}}]"
    assert len(loaded(tmp_path, text).roots) == 3


def test_a_log_file_that_can_never_be_is_told_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    for path, said in (
        ("gone/daemon.log", f"its folder is not there: {tmp_path}/gone"),
        ("file/daemon.log", "file is not a folder"),
        ("folder", "is not a regular file"),
        ("link", "is not a regular file"),
        ("x" * 256, "a part of 256 bytes"),
    ):
        problem = only_problem(tmp_path, f"roots: [{{path: a}}]\nlog:\n  file: {path}\n")
        assert (problem.line, problem.key) == (3, "log.file")
        assert said in problem.message
    for path in ("file", "folder/daemon.log"):
        loaded(tmp_path, f"roots: [{{path: a}}]\nlog: {{file: {path}}}\n")


def test_of_endless_unknown_keys_a_hundred_are_named(tmp_path: Path) -> None:
    text = root_text("\n".join(f"key{number}: 1" for number in range(500)))
    found = problems(tmp_path, text)
    assert len(found) == 101
    assert {(problem.key, problem.message) for problem in found if "more" in problem.message} == {
        ("roots[0]", "and 400 more unknown keys")
    }


def test_nothing_is_built_from_tags(tmp_path: Path) -> None:
    text = "roots: !!python/object/apply:os.mkdir [x]\n"
    file = write(tmp_path, text)
    with pytest.raises(ConfigError, match="tagged"):
        load(file)
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.yaml"]
