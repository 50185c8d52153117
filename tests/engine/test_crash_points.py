"""Death at every single system call of a command's walk, before it and after it.

The system calls that the spool makes go through a gate that dies at the n-th of them: from then
on every one fails, as for a process that is no more. Then a new daemon's parts are built on what
lies on disk, recover, and work on. Whatever n is, the promises hold.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fileipc.config.settings import RootSettings
from fileipc.dialects import NATIVE
from fileipc.engine.claiming import Claiming, ClaimRules
from fileipc.engine.execution import Executors
from fileipc.engine.health import Health
from fileipc.engine.intake import Envelope, Intake, IntakeRules, Refusal
from fileipc.engine.recovery import recover_claims
from fileipc.engine.running import Running
from fileipc.engine.settle import Settler
from fileipc.engine.steps import Steps
from fileipc.engine.work import Work
from fileipc.executors.child import ChildExecutor
from fileipc.executors.inline import InlineExecutor
from fileipc.executors.port import Isolation
from fileipc.executors.process import ProcessExecutor
from fileipc.handlers.embedded import EmbeddedHandler
from fileipc.handlers.port import Scope
from fileipc.handlers.registry import Registry
from fileipc.spool.atomic import Writer
from fileipc.spool.create import create_root, prepare_root
from fileipc.spool.layout import Layout
from fileipc.spool.store import Spool

ID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
CALLS = ("open", "write", "pwrite", "link", "rename", "unlink", "mkdir", "chmod", "fsync")


class Dead(BaseException):
    """The process is no more."""


class Gate:
    """Counts system calls; dies at the n-th, and stays dead."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at = at
        self.after = after
        self.count = 0
        self.dead = False

    def through(self, call: Callable[..., Any], *args: Any, **more: Any) -> Any:
        if self.dead:
            raise Dead
        self.count += 1
        if self.count == self.at and not self.after:
            self.dead = True
            raise Dead
        done = call(*args, **more)
        if self.count == self.at:
            self.dead = True
            raise Dead
        return done


@contextmanager
def gated(monkeypatch: pytest.MonkeyPatch, gate: Gate) -> Iterator[None]:
    with monkeypatch.context() as patch:
        for name in CALLS:
            call = getattr(os, name)

            def wrapped(*args: Any, _call: Callable[..., Any] = call, **more: Any) -> Any:
                return gate.through(_call, *args, **more)

            patch.setattr(os, name, wrapped)
        yield


class NoControl:
    """Nothing to ask about a root here."""

    def describe(self) -> dict[str, Any]:
        return {}

    def cancel(self, command_id: str) -> str:
        return "unknown"


class Parts:
    """What one daemon does with one root, without its threads."""

    def __init__(self, layout: Layout, runs: list[str], *, idempotent: bool, durable: bool) -> None:
        settings = RootSettings(path=layout.path, name="root", project=os.path.dirname(layout.path))

        def effect(args: dict[str, Any]) -> dict[str, Any]:
            runs.append("ran")
            return {"big": "x" * args.get("size", 0)}

        handler = EmbeddedHandler("effect", effect, Isolation.THREAD, 60.0, idempotent)
        registry = Registry.build(settings, NoControl()).with_handlers((handler,))
        self.spool = Spool(layout, Writer(durable=durable))
        health = Health("root", lambda _fact: None, lambda: None)
        self.intake = Intake(
            self.spool,
            NATIVE,
            IntakeRules(
                max_bytes=1 << 20,
                max_depth=64,
                default_ttl=300.0,
                stale_after=3600.0,
                owner_allowed=lambda _uid: True,
            ),
        )
        self.steps = Steps(layout, health)
        self.settler = Settler(
            self.spool,
            NATIVE,
            self.steps,
            root="root",
            tell=lambda _fact: None,
            health=health,
            inline_limit=1000,
        )
        self.claiming = Claiming(
            self.spool,
            self.steps,
            ClaimRules(owner=str(uuid.uuid4()), pid=1, host="h", max_attempts=3),
            lambda command: registry.find(command.type, command.args),
        )
        self.work = Work(
            self.spool,
            self.steps,
            self.claiming,
            self.settler,
            registry,
            Executors(InlineExecutor(), ProcessExecutor(), ChildExecutor()),
            Running(),
            scope=Scope(root=layout.path, project=settings.project),
            result_limit=1 << 20,
            root="root",
            tell=lambda _fact: None,
            look_again=lambda _name: None,
        )

    def live(self) -> None:
        """Recover, then take everything that waits."""
        recover_claims(self.spool, self.intake, self.steps, self.claiming, self.settler, self.work)
        for name in list(self.spool.names()):
            examined = self.intake.examine(name, time.time())
            if isinstance(examined, Envelope):
                self.work.run(examined)
            elif isinstance(examined, Refusal):
                self.settler.reject(examined)
        self.spool.claims.close()


def fresh_root(folder: Path) -> Layout:
    layout = Layout(str(folder / ".ipc"))
    create_root(layout, Writer())
    prepare_root(layout, Writer())
    return layout


def deaths(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    drop: Callable[[Layout], None],
    check: Callable[[Layout, list[str]], None],
    *,
    idempotent: bool,
    durable: bool = False,
) -> int:
    """Die at every call, before and after it, and again during the recovery; returns how often."""
    died = 0
    for after in (False, True):
        at = 1
        while True:
            folder = tmp_path / f"{after}-{at}"
            folder.mkdir()
            layout, runs = fresh_root(folder), list[str]()
            drop(layout)
            gate = Gate(at, after=after)
            with gated(monkeypatch, gate):
                try:
                    Parts(layout, runs, idempotent=idempotent, durable=durable).live()
                except Dead:
                    died += 1
            if not gate.dead:
                break
            second = Gate(at % 7 + 1, after=after)
            with gated(monkeypatch, second):
                try:
                    Parts(layout, runs, idempotent=idempotent, durable=durable).live()
                except Dead:
                    died += 1
            Parts(layout, runs, idempotent=idempotent, durable=durable).live()
            check(layout, runs)
            at += 1
    return died


def whole(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(path).read_bytes())
    return found


def settled(layout: Layout) -> dict[str, Any]:
    """The one final response; it stands in the archive and is published, and nothing is left."""
    archived = list(Path(layout.archive).glob("????-??-??/*"))
    names = sorted(path.name for path in archived if not path.name.startswith("."))
    assert names[0] == f"{ID}.command.json"
    assert names[1] == f"{ID}.response.json"
    response = whole(layout.response(ID))
    assert response == whole(str(archived[0].parent / f"{ID}.response.json"))
    assert os.listdir(layout.commands) == []
    assert os.listdir(layout.locks) == []
    return response


def command(**fields: Any) -> bytes:
    return json.dumps({"id": ID, "type": "effect", **fields}).encode()


def drop_command(layout: Layout) -> None:
    Path(layout.command(f"{ID}.json")).write_bytes(command())


@pytest.mark.parametrize("durable", [False, True], ids=["process", "power"])
def test_a_command_that_may_run_once_never_runs_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    def check(layout: Layout, runs: list[str]) -> None:
        response = settled(layout)
        assert len(runs) <= 1
        if response["status"] == "completed":
            assert runs == ["ran"]
        else:
            assert response["error"]["code"] == "interrupted"

    died = deaths(tmp_path, monkeypatch, drop_command, check, idempotent=False, durable=durable)
    assert died > 20


def test_an_idempotent_command_ends_completed_or_given_up_whenever_the_daemon_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(layout: Layout, runs: list[str]) -> None:
        response = settled(layout)
        if response["status"] == "completed":
            assert runs
        else:
            assert response["error"]["code"] == "crashed"

    assert deaths(tmp_path, monkeypatch, drop_command, check, idempotent=True) > 20


def test_a_large_result_is_never_published_without_its_side_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drop(layout: Layout) -> None:
        Path(layout.command(f"{ID}.json")).write_bytes(command(args={"size": 5000}))

    def check(layout: Layout, runs: list[str]) -> None:
        response = settled(layout)
        if response["status"] == "completed":
            assert len(Path(layout.result(ID)).read_bytes()) == response["result"]["bytes"]

    assert deaths(tmp_path, monkeypatch, drop, check, idempotent=False) > 20


def test_a_rejected_file_is_set_aside_once_with_one_reason_and_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drop(layout: Layout) -> None:
        Path(layout.command("junk.json")).write_bytes(b"{nonsense}")

    def check(layout: Layout, runs: list[str]) -> None:
        kept = [name for name in os.listdir(layout.rejected) if not name.startswith(".")]
        assert len(kept) == 2
        assert whole(layout.response("junk"))["error"]["code"] == "invalid_command"
        assert os.listdir(layout.commands) == []

    assert deaths(tmp_path, monkeypatch, drop, check, idempotent=False) > 8


def test_a_command_sent_again_is_answered_from_the_archive_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drop(layout: Layout) -> None:
        drop_command(layout)
        runs: list[str] = []
        Parts(layout, runs, idempotent=False, durable=False).live()
        os.unlink(layout.response(ID))
        drop_command(layout)

    def check(layout: Layout, runs: list[str]) -> None:
        assert settled(layout)["status"] == "completed"
        assert runs == []

    assert deaths(tmp_path, monkeypatch, drop, check, idempotent=False) > 5
