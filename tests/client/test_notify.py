from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fileipc.client.notify import Bell, Watch

LONG = 30.0  # seconds; a wait of this length that ends is one that was woken
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")


def put(folder: Path, name: str) -> None:
    temporary = folder / f".{name}.tmp"
    temporary.write_text("x")
    temporary.rename(folder / name)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.005)


def wait_for(bell: Bell, folder: Path, name: str, woken: list[str]) -> threading.Thread:
    """Wait in a thread, as a client does: look, pause, look again."""

    def run() -> None:
        with bell.waiter(name) as waiter:
            end = time.monotonic() + LONG
            while not (folder / name).exists():
                assert time.monotonic() < end
                waiter.wait(LONG)
        woken.append(name)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@linux
def test_a_watch_tells_names_that_were_renamed_in_or_closed_after_writing(tmp_path: Path) -> None:
    watch = Watch(str(tmp_path))
    put(tmp_path, "renamed")
    (tmp_path / "written").write_text("x")
    names = watch.read(LONG)
    assert names is not None
    assert {"renamed", "written"} <= names
    assert watch.read(0.0) == set()
    watch.close()


@linux
def test_a_watch_of_a_folder_that_is_removed_goes_blind(tmp_path: Path) -> None:
    folder = tmp_path / "responses"
    folder.mkdir()
    watch = Watch(str(folder))
    folder.rmdir()
    assert watch.read(LONG) is None
    assert watch.blind
    watch.close()


@linux
def test_a_missing_folder_cannot_be_watched_and_no_descriptor_is_left(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        Watch(str(tmp_path / "missing"))
    assert len(os.listdir("/proc/self/fd")) == before


@linux
def test_every_waiting_thread_is_woken_for_its_own_name_whoever_reads_the_watch(
    tmp_path: Path,
) -> None:
    bell = Bell(str(tmp_path))
    woken: list[str] = []
    names = [f"{number}.json" for number in range(8)]
    threads = [wait_for(bell, tmp_path, name, woken) for name in names]
    for name in [*names[4:], *names[:4]]:
        put(tmp_path, name)
        until(lambda name=name: name in woken)  # type: ignore[misc]
    for thread in threads:
        thread.join(LONG)
    assert sorted(woken) == names


@linux
def test_a_reader_that_is_busy_with_its_own_answer_does_not_hold_up_the_others(
    tmp_path: Path,
) -> None:
    bell = Bell(str(tmp_path))
    left, busy = threading.Event(), threading.Event()

    def read_first() -> None:
        with bell.waiter("first.json") as waiter:
            waiter.wait(LONG)
            left.set()
            busy.wait(LONG)

    reader = threading.Thread(target=read_first, daemon=True)
    reader.start()
    until(lambda: bell._reader is not None)
    woken: list[str] = []
    other = wait_for(bell, tmp_path, "other.json", woken)
    until(lambda: "other.json" in bell._waiters)
    put(tmp_path, "first.json")
    assert left.wait(LONG)
    put(tmp_path, "other.json")
    other.join(LONG / 2)
    woken_meanwhile = list(woken)
    busy.set()
    reader.join(LONG)
    assert woken_meanwhile == ["other.json"]


@linux
def test_an_answer_that_came_before_the_wait_but_after_the_watch_is_not_missed(
    tmp_path: Path,
) -> None:
    bell = Bell(str(tmp_path))
    with bell.waiter("a.json") as waiter:
        put(tmp_path, "a.json")
        waiter.wait(LONG)


@linux
def test_a_bell_no_longer_fits_once_its_folder_was_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "responses"
    folder.mkdir()
    bell = Bell(str(folder))
    assert bell.fits()
    folder.rename(tmp_path / "away")
    folder.mkdir()
    assert not bell.fits()
    assert Bell(str(folder)).fits()


@linux
def test_a_bell_does_not_fit_in_a_forked_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bell = Bell(str(tmp_path))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert not bell.fits()


def test_without_a_watch_a_waiter_sleeps_for_its_pause(tmp_path: Path) -> None:
    bell = Bell(str(tmp_path), watch=False)
    assert not bell.fits()
    with bell.waiter("a.json") as waiter:
        started = time.monotonic()
        waiter.wait(0.02)
        assert time.monotonic() - started >= 0.02


def test_a_folder_that_cannot_be_watched_still_makes_a_bell(tmp_path: Path) -> None:
    bell = Bell(str(tmp_path / "missing"))
    with bell.waiter("a.json") as waiter:
        waiter.wait(0.0)
