"""What README.md shows is run, and what it lists is complete."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema
import msgspec
import pytest

import fileipc
from fileipc import Client
from fileipc.cli.app import SUBCOMMANDS, application
from fileipc.cli.common import ExitCode
from fileipc.config.load import load
from fileipc.config.settings import BUILT_IN
from fileipc.errors import Outcome
from fileipc.protocol.models import Command, Response, RootStatus, command_schema, response_schema
from fileipc.spool.layout import Layout
from fileipc.spool.probe import is_served, wait_until_served

from ..daemon.harness import PATIENCE, until
from .conftest import Shell, stop_daemon
from .generate import parts, with_parts
from .readme import Document, anchor, code_spans, unquoted

README = Document()
SOURCE = Path(fileipc.__file__).parent
ANYTHING = "..."


def fits(expected: Any, found: Any) -> bool:
    """Whether a result is what the README shows; "..." there stands for anything."""
    if expected == ANYTHING:
        return True
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(
            fits(value, found[key]) for key, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(fits, expected, found))
    return bool(expected == found)


def documents(text: str) -> Iterator[Any]:
    """The JSON values that stand one after the other in a text, whatever stands between."""
    decoder, at = json.JSONDecoder(), 0
    while (start := text.find("{", at)) >= 0:
        value, at = decoder.raw_decode(text, start)
        yield value


# -- what is shown is run ---------------------------------------------------------------------


def test_the_first_session_works_with_the_command_line_and_with_plain_files(
    shell: Shell, tmp_path: Path
) -> None:
    said = shell.run("sh", "-euc", README.block("first-session"), cwd=tmp_path)
    try:
        pong, found = documents(said)
        assert pong["pong"] is True
        assert found["count"] == 1
        assert "shop/.ipc: serving" in said
        said = shell.run("sh", "-euc", README.block("plain-files"), cwd=tmp_path / "shop")
        (response,) = documents(said)
        assert response["status"] == "completed"
        assert response["result"]["path"] == "shop.py"
        assert os.listdir(tmp_path / "shop" / ".ipc" / "responses") == []
    finally:
        stop_daemon(tmp_path / "shop" / ".ipc")


@pytest.mark.parametrize(
    "asked", [("ping",), ("analyze_file", '{"target": "src", "depth": 0}'), ("ping", "{}", "9")]
)
def test_the_sh_client_prints_the_final_response(
    shell: Shell, shop: Path, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    client = tmp_path / "ask"
    client.write_text(README.block("ask"))
    (response,) = documents(shell.run("sh", str(client), *asked, cwd=shop))
    assert (response["type"], response["status"]) == (asked[0], "completed")


def test_the_sh_client_gives_up_and_takes_its_command_back(shell: Shell, tmp_path: Path) -> None:
    client = tmp_path / "ask"
    client.write_text(README.block("ask"))
    shell.run("fileipc", "init", cwd=tmp_path)
    done = subprocess.run(
        ["sh", client, "ping", "{}", "-5"],
        cwd=tmp_path,
        env=shell.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 124
    assert "no answer to" in done.stderr
    assert os.listdir(tmp_path / ".ipc" / "commands") == []


def test_the_python_client_example_prints_what_it_says(shell: Shell, shop: Path) -> None:
    said = shell.run("python3", "-c", README.block("client"), cwd=shop)
    assert said == README.block("client-prints")


def test_the_worker_example_serves_until_it_is_told_to_stop(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(README.block("worker"))
    worker = subprocess.Popen([sys.executable, "worker.py"], cwd=tmp_path, env=shell.env)
    try:
        root = Layout(str(tmp_path / ".ipc"))
        until(lambda: worker.poll() is not None or os.path.isdir(root.path), "the worker's root")
        assert wait_until_served(root, PATIENCE)
        assert Client(tmp_path).call("summarize", {"text": "one two"}) == {"words": 2}
    finally:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
    assert not is_served(root)


ASKED = [block.name for block in README.blocks if block.name.startswith("ask-")]


@pytest.mark.parametrize("name", ASKED)
def test_each_type_answers_as_shown(shop: Path, name: str) -> None:
    command = json.loads(README.block(name))
    expected = json.loads(README.block(name.replace("ask-", "get-")))
    found = Client(shop).call(command["type"], command.get("args"))
    assert fits(expected, found), found


def failures() -> Iterator[tuple[str, str, str, str]]:
    """Type, args, code and message of every error that is shown."""
    for type_ in BUILT_IN:
        if type_ != "ping":
            for args, code, message in README.table(type_, "args", "code", "message"):
                yield type_, args, code, message
    for own, *rest in README.table("Your own: python and exec", "type", "args", "code", "message"):
        args, code, message = rest
        yield unquoted(own), args, code, message


@pytest.mark.parametrize(("type_", "args", "code", "message"), tuple(failures()))
def test_each_error_comes_as_shown(
    shop: Path, type_: str, args: str, code: str, message: str
) -> None:
    client = Client(shop)
    response = client.wait(client.submit(type_, json.loads(unquoted(args))))
    assert response.error is not None
    assert response.error.code == unquoted(code)
    wanted = unquoted(message)
    if wanted.endswith(ANYTHING):
        assert response.error.message.startswith(wanted.removesuffix(ANYTHING))
    else:
        assert response.error.message == wanted


def test_every_type_has_a_section_with_an_example() -> None:
    shown = {json.loads(README.block(name))["type"] for name in ASKED}
    assert shown >= set(BUILT_IN) - {"cancel"}
    assert set(BUILT_IN) <= set(README.headings())


def test_the_sample_configurations_are_valid(tmp_path: Path) -> None:
    samples = [block for block in README.blocks if block.language == "yaml"]
    assert samples
    for block in samples:
        path = tmp_path / f"{block.name}.yaml"
        path.write_text(block.text)
        assert load(str(path)).roots


def test_the_shown_command_and_response_fit_the_schemas() -> None:
    jsonschema.validate(json.loads(README.block("command")), command_schema())
    jsonschema.validate(json.loads(README.block("response")), response_schema())
    msgspec.json.decode(README.block("command"), type=Command)
    msgspec.json.decode(README.block("response"), type=Response)


# -- what is listed is complete ---------------------------------------------------------------


def test_generated_parts_are_up_to_date() -> None:
    """`python -m tests.docs.generate` brings them up to date."""
    assert with_parts(README.text, parts()) == README.text
    for part in parts().values():
        assert part in README.text


def test_every_field_that_travels_is_explained() -> None:
    def named(title: str, *header: str) -> list[str]:
        return [name for row in README.table(title, *header) for name in code_spans(row[0])]

    assert named("A command", "field", "needed", "meaning") == list(Command.__struct_fields__)
    assert sorted(named("A response", "field", "meaning")) == sorted(Response.__struct_fields__)
    shown = json.loads(README.block("response"))
    assert list(shown) == list(Response.__struct_fields__)
    heartbeat = named("Logs and status", "field", "meaning")
    assert sorted(heartbeat) == sorted(RootStatus.__struct_fields__)


def test_the_outcomes_are_explained() -> None:
    rows = README.table("Errors", "outcome", "meaning")
    assert [unquoted(row[0]) for row in rows] == [str(outcome) for outcome in Outcome]


def command_words(table: list[list[str]]) -> dict[str, str]:
    """`run` -> the row about it, of `fileipc run ...`; `config check` stays two words."""
    found = {}
    for usage, about in table:
        match = re.match(r"`fileipc ([a-z]+(?: [a-z]+)?)", usage)
        assert match, usage
        words = match[1].split() if match[1].startswith("config") else match[1].split()[:1]
        found[" ".join(words)] = f"{usage} {about}"
    return found


def test_the_command_line_section_lists_what_help_lists(shell: Shell) -> None:
    rows = command_words(README.table("Command line", "command", "what it does"))
    said = shell.run("fileipc", "--help", cwd=Path.cwd())
    listed = re.findall(
        r"^  ([a-z]+) ", said.split("Commands:")[1].split("Exit codes")[0], re.MULTILINE
    )
    assert list(dict.fromkeys(words.split()[0] for words in rows)) == listed == list(SUBCOMMANDS)


def leaves() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(application)
    for name in SUBCOMMANDS:
        command = application.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {below}", one) for below, one in command.commands.items())
        else:
            yield name, command


@pytest.mark.parametrize(("name", "command"), tuple(leaves()))
def test_each_command_is_listed_with_all_its_options(name: str, command: click.Command) -> None:
    row = command_words(README.table("Command line", "command", "what it does"))[name]
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for flag in (*parameter.opts, *parameter.secondary_opts):
                assert flag in row, f"{name}: {flag}"


def test_every_exit_code_is_listed() -> None:
    rows = README.table("Command line", "exit code", "meaning")
    assert [int(row[0]) for row in rows] == [code.value for code in ExitCode]


def told_events() -> set[tuple[str, str]]:
    """Event and level of every fact that the source tells."""
    found: set[tuple[str, str]] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                levels = [
                    arg.attr.lower()
                    for arg in node.args
                    if isinstance(arg, ast.Attribute)
                    and isinstance(arg.value, ast.Name)
                    and arg.value.id == "Level"
                ]
                words = [
                    arg.value
                    for arg in node.args
                    if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
                ]
                if levels and words:
                    found.add((words[0], levels[0]))
    return found


def test_every_event_of_the_logs_is_listed_with_its_level() -> None:
    rows = README.table("Logs and status", "event", "level", "fields", "meaning")
    assert {(unquoted(row[0]), row[1]) for row in rows} == told_events()


def test_links_lead_somewhere() -> None:
    anchors = {anchor(heading) for heading in README.headings()}
    for link in README.links():
        if link.startswith("#"):
            assert link[1:] in anchors, link
        elif "://" not in link:
            assert (README.path.parent / link).exists(), link
