from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fileipc import Client, CommandFailed, CommandGone, NoDaemon, NoRoot, Outcome, WaitTimeout
from fileipc.client.core import new_id
from fileipc.errors import Duplicate, InvalidCommand
from fileipc.protocol.models import Response, Status

from .fake_daemon import FakeDaemon, pending

GENEROUS = 30.0


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + GENEROUS
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.005)


def responses(root: Path) -> list[str]:
    return sorted(name for name in os.listdir(root / "responses") if not name.startswith("."))


@pytest.fixture(params=[False, True], ids=["notified", "polling"])
def client(request: pytest.FixtureRequest, root: Path) -> Client:
    return Client(root, poll=bool(request.param))


def test_a_submitted_command_is_answered_and_its_response_removed(
    fake: FakeDaemon, root: Path, client: Client
) -> None:
    sent = client.submit("echo", {"text": "ä"}, meta={"who": "me"}, ttl=60, priority=3)
    response = client.wait(sent)
    assert response.status is Status.COMPLETED
    assert (response.id, response.result, response.meta) == (sent, {"text": "ä"}, {"who": "me"})
    assert (fake.seen[0].ttl, fake.seen[0].priority) == (60, 3)
    assert responses(root) == []


def test_a_response_is_left_where_the_caller_asks_for_it(
    fake: FakeDaemon, root: Path, client: Client
) -> None:
    sent = client.submit("ping")
    client.wait(sent, discard=False)
    assert responses(root) == [f"{sent}.json"]
    assert client.wait(sent).result == {"pong": True}
    assert responses(root) == []


def test_a_call_returns_the_result(fake: FakeDaemon, client: Client) -> None:
    for number in range(3):
        assert client.call("echo", {"n": number}) == {"n": number}


def test_a_failed_call_raises_with_code_outcome_and_response(
    fake: FakeDaemon, root: Path, client: Client
) -> None:
    with pytest.raises(CommandFailed, match="forbidden: the configuration") as caught:
        client.call("forbidden")
    assert caught.value.code == "forbidden"
    assert caught.value.outcome is Outcome.NOT_STARTED
    assert isinstance(caught.value.response, Response)
    assert caught.value.response.error is not None
    assert caught.value.response.error.details == {"why": "no"}
    assert responses(root) == []


def test_a_failed_command_is_waited_for_without_an_exception(
    fake: FakeDaemon, client: Client
) -> None:
    response = client.wait(client.submit("forbidden"))
    assert response.status is Status.FAILED


def test_a_foreign_servers_plain_error_is_understood(fake: FakeDaemon, client: Client) -> None:
    with pytest.raises(CommandFailed, match="it broke") as caught:
        client.call("foreign")
    assert caught.value.outcome is Outcome.UNKNOWN


def test_running_responses_go_to_on_progress_and_never_end_the_wait(
    fake: FakeDaemon, client: Client
) -> None:
    seen: list[float] = []

    def on_progress(response: Response) -> None:
        assert response.status is Status.RUNNING
        assert response.progress is not None
        seen.append(response.progress.current)
        if response.progress.current == 2:
            fake.go_on.set()

    assert client.wait(client.submit("slow"), on_progress=on_progress).result == "done"
    assert seen == sorted(set(seen))  # each once, however often it was looked at
    assert seen[-1] == 2


def test_a_response_written_in_place_in_two_halves_is_read_once_it_is_whole(
    fake: FakeDaemon, root: Path, client: Client
) -> None:
    sent = client.submit("torn")
    until(lambda: responses(root) == [f"{sent}.json"])
    with pytest.raises(WaitTimeout, match="its response cannot be read"):
        client.wait(sent, timeout=0.1)
    fake.go_on.set()
    assert client.wait(sent).result == "whole"


def test_a_call_fetches_the_whole_of_a_large_result(
    fake: FakeDaemon, root: Path, client: Client
) -> None:
    assert client.call("large") == ["x"] * 1000
    assert responses(root) == []


def test_the_whole_of_a_preview_stays_until_it_is_fetched(
    fake: FakeDaemon, root: Path, client: Client
) -> None:
    response = client.wait(client.submit("large"))
    assert response.result["truncated"] is True
    assert len(responses(root)) == 2
    assert client.result(response) == ["x"] * 1000
    assert responses(root) == []
    with pytest.raises(CommandGone, match="removed already"):
        client.result(response)


def test_a_whole_result_is_returned_as_it_is(fake: FakeDaemon, client: Client) -> None:
    response = client.wait(client.submit("echo", {"truncated": True, "path": "src/x.py"}))
    assert client.result(response) == {"truncated": True, "path": "src/x.py"}


def test_without_a_daemon_nothing_is_sent_and_the_message_says_what_to_do(root: Path) -> None:
    client = Client(root)
    with pytest.raises(NoDaemon, match=f"fileipc run --root {root}") as caught:
        client.call("ping")
    assert caught.value.outcome is Outcome.NOT_STARTED
    assert pending(root) == []


def test_a_command_may_be_left_for_a_daemon_that_comes_later(root: Path) -> None:
    client = Client(root)
    sent = client.submit("ping", check_daemon=False)
    assert pending(root) == [sent]
    with FakeDaemon(root):
        assert client.wait(sent).result == {"pong": True}


def test_a_call_that_times_out_before_its_start_is_withdrawn(
    fake: FakeDaemon, root: Path, client: Client
) -> None:
    with pytest.raises(WaitTimeout, match="withdrawn") as caught:
        client.call("silent", timeout=0.05)
    assert caught.value.outcome is Outcome.NOT_STARTED
    assert pending(root) == []


def test_a_call_that_times_out_while_running_has_an_unknown_outcome_and_goes_on(
    fake: FakeDaemon, root: Path, client: Client
) -> None:
    with pytest.raises(WaitTimeout, match="it was running") as caught:
        client.call("hang", timeout=0.3)
    assert caught.value.outcome is Outcome.UNKNOWN
    assert pending(root) == [caught.value.command_id]


def test_a_wait_that_times_out_leaves_the_command_where_it_is(
    fake: FakeDaemon, root: Path, client: Client
) -> None:
    sent = client.submit("silent")
    with pytest.raises(WaitTimeout, match="still waits and may run yet") as caught:
        client.wait(sent, timeout=0.05)
    assert (caught.value.command_id, caught.value.outcome) == (sent, Outcome.UNKNOWN)
    assert pending(root) == [sent]


def test_a_wait_without_a_timeout_ends_after_the_commands_own_ttl(
    fake: FakeDaemon, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fileipc.client.answers.MARGIN", 0.0)
    sent = client.submit("silent", ttl=0.1)
    with pytest.raises(WaitTimeout):
        client.wait(sent)


def test_a_daemon_that_dies_during_the_wait_ends_it_after_the_grace(root: Path) -> None:
    client = Client(root, grace=0.3)
    with FakeDaemon(root):
        sent = client.submit("hang")
        with pytest.raises(WaitTimeout):
            client.wait(sent, timeout=0.2)
    with pytest.raises(NoDaemon, match="went away") as caught:
        client.wait(sent, timeout=GENEROUS)
    assert (caught.value.command_id, caught.value.outcome) == (sent, Outcome.UNKNOWN)
    assert pending(root) == [sent]


def test_a_call_takes_its_command_back_when_the_daemon_dies_before_it_starts(root: Path) -> None:
    client = Client(root, grace=0.3)
    fake = FakeDaemon(root)
    fake.start()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.call, "silent")
        until(lambda: len(fake.seen) == 1)
        fake.stop()
        with pytest.raises(NoDaemon, match="withdrawn") as caught:
            call.result(GENEROUS)
    assert caught.value.outcome is Outcome.NOT_STARTED
    assert pending(root) == []


def test_a_daemon_that_restarts_within_the_grace_is_waited_for(root: Path) -> None:
    client = Client(root, grace=GENEROUS)
    with ThreadPoolExecutor(1) as pool:
        with FakeDaemon(root) as first:
            call = pool.submit(client.call, "silent", timeout=GENEROUS)
            until(lambda: len(first.seen) == 1)
        (sent,) = pending(root)
        path = root / "commands" / f"{sent}.json"
        path.write_text(path.read_text().replace("silent", "ping"))
        with FakeDaemon(root):
            assert call.result(GENEROUS) == {"pong": True}


def test_waiting_for_what_was_never_sent_ends_after_the_grace(fake: FakeDaemon, root: Path) -> None:
    client = Client(root, grace=0.3)
    with pytest.raises(CommandGone, match="never sent here"):
        client.wait(new_id(), timeout=GENEROUS)


def test_ctrl_c_in_a_call_withdraws_the_command(fake: FakeDaemon, root: Path) -> None:
    client = Client(root)

    def interrupt() -> None:
        until(lambda: len(fake.seen) == 1)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        client.call("silent", timeout=GENEROUS)
    thread.join()
    assert pending(root) == []


def test_a_waiting_command_can_be_cancelled(fake: FakeDaemon, client: Client) -> None:
    assert client.cancel(client.submit("silent")) == "cancelled"


def test_a_running_command_is_being_cancelled(fake: FakeDaemon, client: Client) -> None:
    sent = client.submit("hang")
    until(lambda: client.survey().running == 1)
    assert client.cancel(sent) == "cancelling"


def test_cancelling_what_is_not_there_says_unknown(fake: FakeDaemon, client: Client) -> None:
    assert client.cancel(new_id()) == "unknown"


def test_without_a_daemon_a_waiting_command_is_withdrawn_and_a_started_one_is_not(
    root: Path,
) -> None:
    client = Client(root)
    waiting = client.submit("ping", check_daemon=False)
    assert client.cancel(waiting) == "cancelled"
    assert pending(root) == []
    started = client.submit("ping", check_daemon=False)
    (root / "locks" / f"{started}.lock").touch()
    with pytest.raises(NoDaemon):
        client.cancel(started)
    assert pending(root) == [started]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")
def test_an_answer_is_noticed_without_any_polling(
    fake: FakeDaemon, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(root)
    client.call("ping")  # the first wait looks often instead of setting up a watch
    monkeypatch.setattr("fileipc.client.core.BACKOFF", (2 * GENEROUS,))
    for _ in range(5):
        assert client.call("ping", timeout=GENEROUS) == {"pong": True}


def test_many_threads_share_one_client(fake: FakeDaemon, root: Path, client: Client) -> None:
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: client.call("echo", {"n": n}), range(64)))
    assert results == [{"n": n} for n in range(64)]
    assert responses(root) == []


def test_an_id_that_waits_already_is_a_duplicate(fake: FakeDaemon, client: Client) -> None:
    name = new_id()
    client.submit("silent", id=name.upper())
    with pytest.raises(Duplicate):
        client.submit("silent", id=name)


def test_a_response_that_is_no_regular_file_is_not_followed(
    fake: FakeDaemon, root: Path, tmp_path: Path, client: Client
) -> None:
    sent = client.submit("silent")
    secret = tmp_path / "secret"
    secret.write_text(f'{{"id": "{sent}", "status": "completed", "timestamp": ""}}')
    response = root / "responses" / f"{sent}.json"
    response.symlink_to(secret)
    with pytest.raises(WaitTimeout):
        client.wait(sent, timeout=0.05)
    response.unlink()
    os.mkfifo(response)
    with pytest.raises(WaitTimeout):
        client.wait(sent, timeout=0.05)


def test_an_id_cannot_lead_out_of_the_root(fake: FakeDaemon, client: Client) -> None:
    for text in ("../../secret", "/etc/passwd"):
        with pytest.raises(InvalidCommand):
            client.wait(text)
        with pytest.raises(InvalidCommand):
            client.submit("ping", id=text)


def test_the_root_is_found_from_its_project_from_below_and_by_itself(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = root.parent / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert Client().root == Client(root).root == Client(root.parent).root == str(root)


def test_a_project_with_a_folder_called_commands_is_still_a_project(root: Path) -> None:
    (root.parent / "commands").mkdir()
    (root.parent / "responses").mkdir()
    assert Client(root.parent).root == str(root)


def test_no_root_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoRoot, match="fileipc init"):
        Client()
    with pytest.raises(NoRoot, match="fileipc init"):
        Client(tmp_path)


def test_a_root_whose_folders_were_never_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / ".ipc").mkdir()
    with pytest.raises(NoRoot, match="fileipc init"):
        Client(tmp_path).submit("ping", check_daemon=False)


def test_a_root_that_was_removed_and_made_again_is_watched_again(root: Path) -> None:
    client = Client(root)
    with FakeDaemon(root):
        client.call("ping")
        client.call("ping")
    (root / "responses").rename(root / "old")
    (root / "responses").mkdir()
    with FakeDaemon(root):
        assert client.call("ping") == {"pong": True}
