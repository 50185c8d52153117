from __future__ import annotations

from pathlib import Path

import pytest

from fileipc.watch.native import NativeObserver
from fileipc.watch.polling import PollingObserver

from .hints_recorder import Recorder


def test_polling_asks_for_a_scan_again_and_again(tmp_path: Path) -> None:
    seen = Recorder()
    observer = PollingObserver(str(tmp_path), seen, poll_interval=0.01)
    assert not observer.healthy()
    observer.start()
    seen.wait(lambda: len(seen.rescans) >= 3)
    assert observer.healthy()
    observer.stop()
    assert not observer.healthy()
    assert set(seen.rescans) == {"poll"}


def test_polling_tells_once_that_the_folder_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "commands"
    folder.mkdir()
    seen = Recorder()
    observer = PollingObserver(str(folder), seen, poll_interval=0.01)
    observer.start()
    folder.rmdir()
    seen.wait(lambda: seen.losses)
    assert not observer.healthy()
    observer.stop()
    assert seen.losses == ["the watched folder is gone"]


def test_polling_goes_on_after_an_error_in_a_scan(tmp_path: Path) -> None:
    class Failing(Recorder):
        def rescan(self, reason: str) -> None:
            super().rescan(reason)
            if len(self.rescans) == 1:
                raise ValueError("no")

    seen = Failing()
    observer = PollingObserver(str(tmp_path), seen, poll_interval=0.01)
    observer.start()
    seen.wait(lambda: len(seen.rescans) >= 3)
    observer.stop()
    assert seen.rescans[:2] == ["poll", "a poll failed: ValueError: no"]


def test_polling_may_be_stopped_by_the_thread_it_calls(tmp_path: Path) -> None:
    class Stopping(Recorder):
        def rescan(self, reason: str) -> None:
            observer.stop()
            super().rescan(reason)

    seen = Stopping()
    observer = PollingObserver(str(tmp_path), seen, poll_interval=0.01)
    observer.start()
    seen.wait(lambda: seen.rescans)


def test_polling_a_missing_folder_is_an_error_of_start(tmp_path: Path) -> None:
    observer = PollingObserver(str(tmp_path / "missing"), Recorder(), 0.01)
    with pytest.raises(FileNotFoundError):
        observer.start()
    observer.stop()


def test_the_platform_observer_hints_at_commands_and_only_at_them(tmp_path: Path) -> None:
    folder = tmp_path / "commands"
    folder.mkdir()
    seen = Recorder()
    observer = NativeObserver(str(folder), seen)
    observer.start()
    try:
        assert observer.healthy()
        (folder / "notes.txt").write_text("{}")
        (folder / "in-place.json").write_text("{}")
        (folder / ".renamed.tmp").write_text("{}")
        (folder / ".renamed.tmp").rename(folder / "renamed.json")
        seen.wait_hint("in-place.json")
        seen.wait_hint("renamed.json")
        assert set(seen.hints) == {"in-place.json", "renamed.json"}
    finally:
        observer.stop()
    assert not observer.healthy()


def test_the_platform_observer_tells_that_the_folder_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "commands"
    folder.mkdir()
    seen = Recorder()
    observer = NativeObserver(str(folder), seen)
    observer.start()
    try:
        folder.rmdir()
        seen.wait(lambda: seen.losses)
        assert not observer.healthy()
    finally:
        observer.stop()


def test_the_platform_observer_refuses_a_missing_folder(tmp_path: Path) -> None:
    observer = NativeObserver(str(tmp_path / "missing"), Recorder())
    with pytest.raises(FileNotFoundError):
        observer.start()
    observer.stop()
