"""`fileipc demo`: a daemon on a throw-away project, every type of command, a clean stop."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..client import Client
from ..errors import CommandFailed, CommandGone
from ..spool.layout import Layout
from ..spool.probe import wait_until_served
from .common import ExitCode, to_text, write

_START = 30.0
_WIDTH = 400
_LOG_LINES = 6

_FILES = {
    "src/shop.py": (
        '"""A small shop."""\n\n\nclass Basket:\n    def total(self) -> float:\n'
        "        return 0.0  # TODO: add up\n"
    ),
    "scripts/hello.sh": '#!/bin/sh\necho "hello $1, from $PWD"\n',
    "bin/shout": (
        "#!/usr/bin/env python3\nimport json, sys\n"
        "command = json.load(sys.stdin)\n"
        'print(json.dumps({"loud": command["args"]["text"].upper()}))\n'
    ),
    "handlers.py": (
        "import time\n\n\ndef words(args):\n"
        '    return {"words": len(args["text"].split())}\n\n\n'
        "def endless(args):\n    while True:\n        time.sleep(1)\n"
    ),
}


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the folder, and say where it is.")
def command(keep: bool) -> int:
    """Start a daemon on a throw-away project, send it commands of every type, show the answers
    and the log, and stop it. Exit code 1 where anything went otherwise than it should."""
    folder = tempfile.mkdtemp(prefix="fileipc-demo-")
    try:
        return _show(Path(folder))
    finally:
        if keep:
            write(f"kept: {folder}")
        else:
            import shutil

            shutil.rmtree(folder, ignore_errors=True)


def _show(folder: Path) -> int:
    project, config = folder / "shop", folder / "fileipc.yaml"
    _make_project(project)
    _configure(config, project)
    write(f"# the configuration\n{config.read_text()}")
    daemon = subprocess.Popen(
        [sys.executable, "-m", "fileipc", "run", "--config", str(config)],
        stdin=subprocess.DEVNULL,
        stderr=(folder / "stderr").open("w"),
    )
    wrong: list[str] = []
    try:
        if not wait_until_served(Layout(str(project / ".ipc")), _START):
            wrong.append(f"the daemon did not start: {(folder / 'stderr').read_text()}")
        else:
            _tour(Client(project), project, wrong)
            _print_log(project)
    finally:
        daemon.terminate()
        code = daemon.wait()
    state = json.loads((project / ".ipc" / "status.json").read_text())["state"]
    if code != 0 or state != "stopped":
        wrong.append(f"the daemon stopped with exit code {code} and state {state}")
    write(f"# the daemon has stopped: exit code {code}, state {state}")
    for message in wrong:
        write(f"WRONG: {message}")
    write("# all as it should be" if not wrong else f"# {len(wrong)} thing(s) went wrong")
    return ExitCode.FAILED if wrong else ExitCode.COMPLETED


def _tour(client: Client, project: Path, wrong: list[str]) -> None:
    def show(type_: str, args: dict[str, Any], fits: Callable[[Any], bool], **more: Any) -> None:
        write(f"\n$ fileipc send {type_} --args '{json.dumps(args)}'")
        began = time.perf_counter()
        try:
            result = client.call(type_, args, timeout=30, **more)
        except CommandFailed as error:
            result = error
            told = error.response.error
            write(f"failed: {error.code}: {told.message if told else error}")
        else:
            text = to_text(result, one_line=True)
            write(text if len(text) <= _WIDTH else f"{text[:_WIDTH]}...")
        write(f"({(time.perf_counter() - began) * 1e3:.1f} ms)")
        if not fits(result):
            wrong.append(f"{type_} was answered by {result!r:.200}")

    def code(expected: str) -> Callable[[Any], bool]:
        return lambda result: isinstance(result, CommandFailed) and result.code == expected

    show("ping", {}, lambda result: result["pong"])
    show("analyze_file", {"target": "src/shop.py", "depth": 2}, lambda r: r["lines"] == 6)
    show("search_pattern", {"pattern": "TODO", "path": "src"}, lambda r: r["count"] == 1)
    show(
        "run_query",
        {"query": "SELECT name, price FROM goods WHERE price > ? ORDER BY name", "params": [2]},
        lambda r: r["rows"] == [["cheese", 7.5], ["pears", 3.25]],
    )
    show(
        "execute_script",
        {"script": "scripts/hello.sh", "args": ["world"]},
        lambda r: r["exit_code"] == 0 and "hello world" in r["stdout"],
    )
    show("words", {"text": "a custom handler in Python"}, lambda r: r == {"words": 5})
    show("custom", {"target": "shout", "text": "any language"}, lambda r: "LANGUAGE" in r["loud"])
    write("\n# what must not be is refused, and what never ends is ended")
    show("run_query", {"query": "DELETE FROM goods"}, code("forbidden"))
    show("analyze_file", {"target": "../outside"}, code("forbidden"))
    show("serch_pattern", {"pattern": "x"}, code("unknown_type"))
    show("endless", {}, code("timeout"), ttl=1.0)
    _cancel(client, wrong)
    _bad_file(client, project, wrong)


def _cancel(client: Client, wrong: list[str]) -> None:
    write("\n$ fileipc send endless --no-wait; fileipc cancel ID")
    started = threading.Event()
    command_id = client.submit("endless")
    waiter = threading.Thread(target=lambda: _until_running(client, command_id, started))
    waiter.start()
    started.wait(10)
    state = client.cancel(command_id)
    waiter.join()
    write(f"{state}: {command_id}")
    if state not in ("cancelling", "cancelled"):
        wrong.append(f"cancel said {state}")


def _until_running(client: Client, command_id: str, started: threading.Event) -> None:
    try:
        client.wait(command_id, timeout=20, on_progress=lambda _running: started.set())
    except CommandGone:
        started.set()


def _bad_file(client: Client, project: Path, wrong: list[str]) -> None:
    """What an agent with nothing but a Write tool might put there."""
    path = project / ".ipc" / "commands" / "my-command.json"
    write('\n$ echo \'{"id": "my-command", "type": ping}\' > .ipc/commands/my-command.json')
    path.write_text('{"id": "my-command", "type": ping}')
    answer = project / ".ipc" / "responses" / "my-command.json"
    end = time.monotonic() + 10
    while not answer.exists() and time.monotonic() < end:
        time.sleep(0.02)
    if not answer.exists():
        wrong.append("the bad file was not answered")
        return
    error = json.loads(answer.read_text())["error"]
    write(f"{error['code']}: {error['message']} (outcome: {error['outcome']})")
    if error["code"] != "invalid_command" or "line 1" not in error["message"]:
        wrong.append(f"the bad file was answered by {error}")
    if client.call("ping")["pong"] is not True:
        wrong.append("no ping after the bad file")


def _print_log(project: Path) -> None:
    for name in ("fileipc.jsonl", "results.jsonl"):
        lines = (project / ".ipc" / "log" / name).read_text().splitlines()
        write(f"\n# .ipc/log/{name}, the last {_LOG_LINES} of {len(lines)} lines")
        for line in lines[-_LOG_LINES:]:
            write(line if len(line) <= _WIDTH else f"{line[:_WIDTH]}...")
    write("")


def _make_project(project: Path) -> None:
    for name, text in _FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("scripts/hello.sh", "bin/shout"):
        os.chmod(project / name, 0o700)
    (project / ".ipc").mkdir(mode=0o700)
    database = sqlite3.connect(project / "shop.db")
    with database:
        database.execute("CREATE TABLE goods (name TEXT, price REAL)")
        goods = [("apples", 2.0), ("cheese", 7.5), ("pears", 3.25)]
        database.executemany("INSERT INTO goods VALUES (?, ?)", goods)
    database.close()


def _configure(config: Path, project: Path) -> None:
    config.write_text(
        "version: 1\n"
        "roots:\n"
        f"  - path: {project.name}/.ipc\n"
        '    scripts: {allow: ["scripts/*.sh"], timeout: 10s}\n'
        "    databases:\n"
        '      default: {url: "sqlite:///shop.db"}\n'
        "    handlers:\n"
        '      words: {python: "handlers:words", idempotent: true}\n'
        '      endless: {python: "handlers:endless"}\n'
        '      shout: {exec: ["bin/shout"]}\n'
    )
