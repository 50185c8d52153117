from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import jsonschema
import pytest
from click.testing import CliRunner

import fileipc
from fileipc.cli.app import SUBCOMMANDS, application
from fileipc.cli.common import ExitCode, guarded
from fileipc.errors import ConfigError, Problem, RootHeld, RootMissing

from .conftest import Run


def test_help_lists_every_subcommand_without_importing_any(run: Run) -> None:
    done = run("-h")
    assert done.returncode == 0
    for name, text in SUBCOMMANDS.items():
        assert f"{name} " in done.stdout
        assert text.split()[0] in done.stdout


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_has_help_under_both_flags(name: str) -> None:
    module = import_module(f"fileipc.cli.{name}")
    assert isinstance(module.command, click.Command)
    for flag in ("-h", "--help"):
        result = CliRunner().invoke(application, [name, flag])
        assert result.exit_code == 0, result.output
        assert f"Usage: fileipc {name}" in result.output


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").stdout == f"fileipc {fileipc.__version__}\n"


@pytest.mark.parametrize("args", [["snd"], ["--nope"], ["schema", "table"], ["wait"]])
def test_a_misspelt_word_is_a_usage_error(run: Run, args: list[str]) -> None:
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fileipc: ")


def test_bare_it_shows_its_help_as_a_usage_error(run: Run) -> None:
    done = run()
    assert "Usage: fileipc" in done.stdout + done.stderr


def test_a_shell_can_complete_subcommands(run: Run) -> None:
    done = run(_FILEIPC_COMPLETE="bash_complete", COMP_WORDS="fileipc s", COMP_CWORD="1")
    assert done.stdout.split() == ["plain,send", "plain,status", "plain,schema"]


def test_a_shell_can_complete_the_options_of_send(run: Run) -> None:
    env = {"_FILEIPC_COMPLETE": "bash_complete", "COMP_WORDS": "fileipc send --t"}
    assert "--ttl" in run("send", COMP_CWORD="2", **env).stdout


def test_the_console_script_module_imports_nothing() -> None:
    code = "import sys, fileipc.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"click", "msgspec", "json", "fileipc.cli.app"} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError((Problem("f.yaml", 3, "roots", "is wrong"),)), 78),
        (RootMissing("no folder"), 66),
        (RootHeld("/x/.ipc", "pid 1"), 75),
        (FileNotFoundError(2, "No such file", "/x"), 74),
    ],
)
def test_errors_become_a_message_and_their_exit_code(
    capsys: pytest.CaptureFixture[str], error: Exception, code: int
) -> None:
    def fail() -> int:
        raise error

    assert guarded(fail) == code
    assert capsys.readouterr().err.startswith("fileipc: ")


def test_exit_codes_are_those_of_the_readme() -> None:
    assert {code.value for code in ExitCode} == {0, 1, 2, 66, 69, 74, 75, 78, 124, 130, 141}


def test_init_makes_a_private_root_and_says_how_to_serve_it(tmp_path: Path, run: Run) -> None:
    (tmp_path / "shop").mkdir()
    done = run("init", "shop")
    root = tmp_path / "shop" / ".ipc"
    assert (done.returncode, done.stdout) == (0, f"{root}\n")
    assert f"fileipc run --root {root}" in done.stderr
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    folders = {"commands", "responses", "archive", "locks", "log"}
    assert folders <= set(os.listdir(root))
    assert (root / ".gitignore").read_text().endswith("*\n")


def test_init_again_changes_nothing(tmp_path: Path, run: Run) -> None:
    run("init")
    (tmp_path / ".ipc" / "commands" / "x.json").write_text("{}")
    done = run("init", ".ipc")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/.ipc\n")
    assert (tmp_path / ".ipc" / "commands" / "x.json").read_text() == "{}"


def test_init_for_a_group_lets_it_write_commands(tmp_path: Path, run: Run) -> None:
    done = run("init", "--group")
    assert done.returncode == 0
    assert "mode: group" in done.stderr
    root = tmp_path / ".ipc"
    assert stat.S_IMODE((root / "commands").stat().st_mode) == 0o2770
    assert stat.S_IMODE(root.stat().st_mode) == 0o2750


def test_init_for_a_group_says_where_a_private_root_was_there_already(run: Run) -> None:
    run("init")
    assert "it is private" in run("init", "--group").stderr


def test_init_does_not_make_the_project(run: Run) -> None:
    done = run("init", "missing")
    assert (done.returncode, done.stdout) == (66, "")


def test_init_refuses_a_link_that_leads_elsewhere(tmp_path: Path, run: Run) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".ipc").symlink_to("elsewhere")
    done = run("init")
    assert done.returncode == 75
    assert "symbolic link" in done.stderr
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("kind", ["command", "response", "config"])
def test_a_schema_is_a_json_schema(run: Run, kind: str) -> None:
    schema = json.loads(run("schema", kind).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_command_schema_accepts_the_seeds_own_example(run: Run) -> None:
    schema = json.loads(run("schema", "command").stdout)
    command = {
        "id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "type": "analyze_file",
        "args": {"target": "path/to/file", "params": {}},
        "timestamp": "2026-05-17T00:00:00Z",
        "ttl": 300,
    }
    jsonschema.validate(command, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**command, "ttl": 0}, schema)
