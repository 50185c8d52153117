from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from .hints_recorder import Recorder

if not sys.platform.startswith("linux"):
    pytest.skip("inotify exists on Linux only", allow_module_level=True)

from fileipc.watch.inotify import InotifyObserver, shared_reader


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "commands"
    made.mkdir()
    return made


@pytest.fixture
def seen() -> Recorder:
    return Recorder()


@pytest.fixture
def observer(folder: Path, seen: Recorder) -> Iterator[InotifyObserver]:
    made = InotifyObserver(str(folder), seen)
    made.start()
    yield made
    made.stop()


def drained(folder: Path, seen: Recorder) -> list[str]:
    """The hints so far: a last file, whose events come after all others, has been seen."""
    (folder / ".end.tmp").write_text("{}")
    (folder / ".end.tmp").rename(folder / "end.json")
    seen.wait_hint("end.json")
    return [name for name in seen.hints if name != "end.json"]


def test_a_file_renamed_within_the_folder_is_hinted_once(
    folder: Path, seen: Recorder, observer: InotifyObserver
) -> None:
    (folder / ".a.tmp").write_text("{}")
    (folder / ".a.tmp").rename(folder / "a.json")
    assert drained(folder, seen) == ["a.json"]


def test_a_file_moved_in_from_elsewhere_is_hinted(
    folder: Path, seen: Recorder, observer: InotifyObserver
) -> None:
    (folder.parent / "a.json").write_text("{}")
    (folder.parent / "a.json").rename(folder / "a.json")
    assert drained(folder, seen) == ["a.json"]


def test_a_file_written_in_place_is_hinted_when_its_writer_closes_it(
    folder: Path, seen: Recorder, observer: InotifyObserver
) -> None:
    with (folder / "a.json").open("w") as file:
        file.write("{")
        file.flush()
        assert drained(folder, seen) == []
    seen.wait_hint("a.json")


def test_a_hard_link_into_the_folder_is_hinted(
    folder: Path, seen: Recorder, observer: InotifyObserver
) -> None:
    (folder.parent / "source").write_text("{}")
    (folder / "a.json").hardlink_to(folder.parent / "source")
    assert drained(folder, seen) == ["a.json"]


def test_what_is_no_regular_file_is_hinted_so_that_it_can_be_refused(
    folder: Path, seen: Recorder, observer: InotifyObserver
) -> None:
    (folder / "link.json").symlink_to("/etc/passwd")
    os.mkfifo(folder / "fifo.json")
    assert drained(folder, seen) == ["link.json", "fifo.json"]


def test_folders_temporaries_and_other_endings_are_not_hinted(
    folder: Path, seen: Recorder, observer: InotifyObserver
) -> None:
    (folder / "folder.json").mkdir()
    for name in (".hidden.json", "a.json.tmp", "a.json~", "a.part", "notes.txt", "json"):
        (folder / name).write_text("{}")
    assert drained(folder, seen) == []


def test_a_file_that_leaves_the_folder_is_not_hinted(
    folder: Path, seen: Recorder, observer: InotifyObserver
) -> None:
    (folder / "a.json").write_text("{}")
    seen.wait_hint("a.json")
    (folder / "a.json").rename(folder.parent / "a.json")
    assert drained(folder, seen) == ["a.json"]


def test_a_name_that_is_not_utf_8_comes_as_the_file_system_decodes_it(
    folder: Path, seen: Recorder, observer: InotifyObserver
) -> None:
    name = os.fsdecode(b"\xff\xfe\n.json")
    (folder / name).write_text("{}")
    assert drained(folder, seen) == [name]


def test_removing_the_folder_is_told_once(
    folder: Path, seen: Recorder, observer: InotifyObserver
) -> None:
    assert observer.healthy()
    folder.rmdir()
    seen.wait(lambda: seen.losses)
    assert not observer.healthy()
    folder.mkdir()
    assert not observer.healthy(), "the new folder is another one"
    observer.stop()
    assert seen.losses == ["the watched folder was removed"]


def test_moving_the_folder_away_is_told(
    folder: Path, seen: Recorder, observer: InotifyObserver
) -> None:
    folder.rename(folder.parent / "elsewhere")
    seen.wait(lambda: seen.losses)
    assert seen.losses == ["the watched folder was moved away"]
    assert not observer.healthy()


def test_a_parent_that_was_moved_away_is_seen_by_the_health_check(
    folder: Path, seen: Recorder, observer: InotifyObserver
) -> None:
    folder.parent.rename(folder.parent.with_name("moved"))
    assert not observer.healthy()
    folder.parent.with_name("moved").rename(folder.parent)
    assert observer.healthy()


def test_an_overflow_asks_for_a_scan(
    folder: Path, seen: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if queue > 200_000:
        pytest.skip("the kernel's event queue is too long to be filled here")
    go_on = threading.Event()

    class Slow(Recorder):
        def hint(self, name: str) -> None:
            super().hint(name)
            go_on.wait(30)

    slow = Slow()
    observer = InotifyObserver(str(folder), slow)
    observer.start()
    try:
        (folder / "a.json").write_text("{}")
        slow.wait_hint("a.json")
        for _ in range(queue // 2 + 2000):
            for name in ("x.tmp", "y.tmp"):
                os.close(os.open(folder / name, os.O_WRONLY | os.O_CREAT))
        go_on.set()
        slow.wait(lambda: slow.rescans)
        assert slow.rescans == ["overflow"]
        assert observer.healthy()
        assert not caplog.records, "watchdog tells of it on its own"
    finally:
        go_on.set()
        observer.stop()


def test_an_error_in_a_hint_leaves_the_reader_alive_and_asks_for_a_scan(folder: Path) -> None:
    class Failing(Recorder):
        def hint(self, name: str) -> None:
            if name == "bad.json":
                raise ValueError("no")
            super().hint(name)

    seen = Failing()
    observer = InotifyObserver(str(folder), seen)
    observer.start()
    try:
        (folder / "bad.json").write_text("{}")
        assert drained(folder, seen) == []
        assert seen.rescans == ["a hint failed: ValueError: no"]
        assert observer.healthy()
    finally:
        observer.stop()


def test_stopping_one_observer_leaves_the_others_at_work(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    first, second = Recorder(), Recorder()
    observers = [InotifyObserver(str(folder), first), InotifyObserver(str(other), second)]
    for observer in observers:
        observer.start()
    observers[0].stop()
    try:
        (folder / "a.json").write_text("{}")
        assert drained(other, second) == []
        assert first.hints == []
        assert first.losses == []
        assert not observers[0].healthy()
        assert observers[1].healthy()
    finally:
        observers[1].stop()


def test_three_hundred_observers_share_one_kernel_instance_and_one_thread(tmp_path: Path) -> None:
    shared_reader()
    threads = threading.active_count()
    observers, recorders = [], []
    try:
        for number in range(300):
            folder = tmp_path / str(number)
            folder.mkdir()
            recorders.append(Recorder())
            observers.append(InotifyObserver(str(folder), recorders[-1]))
            observers[-1].start()
        assert all(observer.healthy() for observer in observers)
        assert threading.active_count() == threads
        assert inotify_instances() == 1
        for number, seen in enumerate(recorders):
            (tmp_path / str(number) / f"{number}.json").write_text("{}")
            seen.wait_hint(f"{number}.json")
    finally:
        for observer in observers:
            observer.stop()
    assert recorders[0].losses == []


def inotify_instances() -> int:
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{fd}") == "anon_inode:inotify"
        except OSError:
            continue
    return count


def test_a_reader_that_died_is_told_to_all_and_replaced(
    folder: Path, seen: Recorder, observer: InotifyObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = shared_reader()
    monkeypatch.setattr(reader, "should_keep_running", lambda: False)
    (folder / "a.json").write_text("{}")
    reader.join(20)
    reader._is_reading = True  # as if it had died within a read
    assert not observer.healthy()
    again = Recorder()
    second = InotifyObserver(str(folder), again)
    second.start()
    try:
        assert seen.losses == ["the kernel dropped the watch"]
        assert inotify_instances() == 1
        assert drained(folder, again) == []
        assert second.healthy()
        observer.stop()
    finally:
        second.stop()


def test_a_missing_folder_is_an_error_of_start(tmp_path: Path, seen: Recorder) -> None:
    observer = InotifyObserver(str(tmp_path / "missing"), seen)
    with pytest.raises(FileNotFoundError):
        observer.start()
    assert not observer.healthy()
    observer.stop()


def test_a_symlink_in_place_of_the_folder_is_refused(folder: Path, seen: Recorder) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    with pytest.raises(OSError) as caught:  # noqa: PT011 the number says which
        InotifyObserver(str(link), seen).start()
    assert caught.value.errno == errno.ENOTDIR


def test_a_folder_that_may_not_be_read_is_an_error_of_start(folder: Path) -> None:
    script = f"""
import os
from fileipc.watch.inotify import InotifyObserver, shared_reader
shared_reader()
os.chmod({str(folder)!r}, 0)
if os.getuid() == 0:
    os.setuid(65534)
try:
    InotifyObserver({str(folder)!r}, None).start()
except PermissionError as error:
    print("refused", error.filename)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    folder.chmod(0o700)
    assert done.stdout == f"refused {folder}\n"
    assert done.stderr == ""


def test_a_process_ends_although_its_observers_run(folder: Path) -> None:
    script = f"""
from fileipc.watch.inotify import InotifyObserver
from fileipc.watch.polling import PollingObserver
InotifyObserver({str(folder)!r}, None).start()
PollingObserver({str(folder)!r}, None, 3600).start()
"""
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)
