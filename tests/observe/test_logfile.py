from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fileipc.spool.logfile import LogFile

HUGE = 1 << 40


def log_in(folder: Path, **options: int) -> LogFile:
    settings = {"max_size": HUGE, "max_age": HUGE, "keep": 3, **options}
    return LogFile(str(folder / "log.jsonl"), **settings)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_lines_are_appended_to_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("old\n")
    log = log_in(tmp_path)
    log.write(b"one")
    log.write(b"two")
    log.close()
    log.write(b"three")
    log.close()
    assert lines(tmp_path / "log.jsonl") == ["old", "one", "two", "three"]


def test_a_new_file_is_for_its_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        log = log_in(tmp_path)
        log.write(b"x")
        log.close()
        os.umask(0o077)
        shared = LogFile(str(tmp_path / "shared"), 0o640, max_size=HUGE, max_age=HUGE, keep=1)
        shared.write(b"x")
        shared.close()
    finally:
        os.umask(old)
    assert (tmp_path / "log.jsonl").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o640


def test_a_file_that_grew_is_rotated_and_only_so_many_are_kept(tmp_path: Path) -> None:
    log = log_in(tmp_path, max_size=20, keep=2)
    for number in range(8):
        log.write(b"line %04d" % number)  # 10 bytes with its end: two fit
    log.close()
    assert lines(tmp_path / "log.jsonl") == ["line 0006", "line 0007"]
    assert lines(tmp_path / "log.jsonl.1") == ["line 0004", "line 0005"]
    assert lines(tmp_path / "log.jsonl.2") == ["line 0002", "line 0003"]
    assert len(list(tmp_path.iterdir())) == 3


def test_keeping_none_starts_the_file_anew(tmp_path: Path) -> None:
    log = log_in(tmp_path, max_size=20, keep=0)
    for number in range(5):
        log.write(b"line %04d" % number)
    log.close()
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]
    assert lines(tmp_path / "log.jsonl") == ["line 0004"]


def test_a_line_larger_than_the_file_may_be_is_still_written(tmp_path: Path) -> None:
    log = log_in(tmp_path, max_size=5)
    log.write(b"a long first line")
    log.write(b"a long second line")
    log.close()
    assert lines(tmp_path / "log.jsonl") == ["a long second line"]
    assert lines(tmp_path / "log.jsonl.1") == ["a long first line"]


@pytest.mark.parametrize(
    "first",
    [
        '{"timestamp":"2001-02-03T04:05:06.789Z","event":"x"}',
        "2001-02-03T04:05:06.789Z [info     ] x",
        '{"id":"x","result":"2999-01-01T00:00:00Z","timestamp":"2001-02-03T04:05:06Z"}',
    ],
)
def test_the_age_of_a_file_is_what_its_first_line_tells(tmp_path: Path, first: str) -> None:
    (tmp_path / "log.jsonl").write_text(f"{first}\n")
    log = log_in(tmp_path, max_age=86400)
    log.write(b"new")
    log.write(b"newer")
    log.close()
    assert lines(tmp_path / "log.jsonl.1") == [first]
    assert lines(tmp_path / "log.jsonl") == ["new", "newer"]


@pytest.mark.parametrize(
    "first", ["", "no time at all", '{"timestamp":"soon"}', '{"timestamp":5}', "[" * 100_000]
)
def test_a_first_line_that_tells_no_time_leaves_the_file_its_last_change(
    tmp_path: Path, first: str
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"{first}\n")
    log = log_in(tmp_path, max_age=86400)
    log.write(b"young")
    log.close()
    assert len(lines(path)) == 2
    os.utime(path, (1, 1))
    log.write(b"old")
    log.close()
    assert lines(path) == ["old"]


def test_a_first_line_from_the_future_does_not_stop_rotation_for_ever(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("2999-01-01T00:00:00Z\n")
    log = log_in(tmp_path, max_age=0)
    log.write(b"new")
    log.close()
    assert lines(tmp_path / "log.jsonl") == ["new"]


def test_a_file_that_was_moved_away_is_made_again(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.write(b"one")
    (tmp_path / "log.jsonl").rename(tmp_path / "moved")
    log.write(b"two")
    (tmp_path / "log.jsonl").unlink()
    log.write(b"three")
    log.close()
    assert lines(tmp_path / "moved") == ["one"]
    assert lines(tmp_path / "log.jsonl") == ["three"]


def test_a_file_that_was_truncated_goes_on_at_its_start(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.write(b"one")
    os.truncate(tmp_path / "log.jsonl", 0)
    log.write(b"two")
    log.close()
    assert (tmp_path / "log.jsonl").read_bytes() == b"two\n"


def test_a_folder_that_was_removed_is_made_again_but_not_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "root" / "log"
    folder.mkdir(parents=True)
    log = log_in(folder)
    log.write(b"one")
    (folder / "log.jsonl").unlink()
    folder.rmdir()
    log.write(b"two")
    assert lines(folder / "log.jsonl") == ["two"]
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "log.jsonl").unlink()
    folder.rmdir()
    folder.parent.rmdir()
    with pytest.raises(FileNotFoundError):
        log.write(b"three")
    folder.mkdir(parents=True)
    log.write(b"four")
    log.close()
    assert lines(folder / "log.jsonl") == ["four"]


def test_a_symlink_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("")
    (tmp_path / "log.jsonl").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic link"):
        log_in(tmp_path).write(b"x")
    assert (tmp_path / "victim").read_text() == ""


def test_a_pipe_in_place_of_the_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log.jsonl")
    log = log_in(tmp_path)
    for _ in range(3):
        with pytest.raises(OSError, match="not a regular file"):
            log.write(b"x")


def test_something_in_the_way_of_rotation_costs_no_line(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl.1" / "x").mkdir(parents=True)
    log = log_in(tmp_path, max_size=5, keep=1)
    log.write(b"one")
    with pytest.raises(IsADirectoryError):
        log.write(b"two")
    log.write(b"three")
    log.close()
    assert lines(tmp_path / "log.jsonl") == ["one", "two", "three"]


def test_half_a_line_that_a_crash_left_is_not_glued_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('whole\n{"half')
    log = log_in(tmp_path)
    log.write(b"next")
    log.close()
    assert lines(tmp_path / "log.jsonl") == ["whole", '{"half', "next"]


def test_half_a_line_that_a_full_disk_left_is_not_glued_to_the_next(tmp_path: Path) -> None:
    script = f"""
import resource, signal
from fileipc.spool.logfile import LogFile
log = LogFile({str(tmp_path / "log.jsonl")!r}, max_size=1 << 40, max_age=1 << 40, keep=1)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log.write(b"whole")
resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
try:
    log.write(b"too long for what is left")
except OSError as error:
    print(error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.write(b"next")
"""
    if resource.getrlimit(resource.RLIMIT_FSIZE)[1] != resource.RLIM_INFINITY:
        pytest.skip("file sizes are limited here")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "File too large\n"
    assert lines(tmp_path / "log.jsonl") == ["whole", "too ", "next"]


def test_lines_of_many_threads_stay_whole_through_rotation(tmp_path: Path) -> None:
    log = log_in(tmp_path, max_size=10_000, keep=100)

    def write(who: int) -> None:
        for number in range(300):
            log.write(json.dumps({"who": who, "number": number, "pad": "x" * who}).encode())

    threads = [threading.Thread(target=write, args=(who,)) for who in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    found = [json.loads(line) for path in tmp_path.iterdir() for line in lines(path)]
    assert len(found) == 6 * 300
    assert len({(line["who"], line["number"]) for line in found}) == 6 * 300
    assert len(list(tmp_path.iterdir())) > 5
