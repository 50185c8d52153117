"""Nothing that a handler opens lies outside the project."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from fileipc.errors import CommandFailure, Forbidden, InvalidArgs, NotFound, Outcome
from fileipc.handlers.confine import Border, Opened, plain, shown

from .harness import Place, not_as_root


@pytest.fixture
def border(place: Place) -> Border:
    return Border(str(place.folder), str(place.root))


def read(opened: Opened) -> bytes:
    with opened:
        return os.read(opened.fd, 1000)


def test_a_file_of_the_project_is_opened_by_relative_and_by_absolute_path(
    place: Place, border: Border
) -> None:
    place.write("src/a.txt", "text")
    for path in ("src/a.txt", "./src//a.txt", "src/../src/a.txt", str(place.folder / "src/a.txt")):
        opened = border.open_file(path)
        assert opened.relative == "src/a.txt"
        assert read(opened) == b"text"


def test_the_project_itself_is_a_folder_that_can_be_opened(border: Border) -> None:
    with border.open(".") as opened:
        assert opened.is_folder
        assert opened.relative == "."


@pytest.mark.parametrize(
    "path",
    ["..", "../x", "a/../../x", "/etc/passwd", "../p-evil/x", "leak", "dir/etc/passwd", "hop/x"],
)
def test_a_path_out_of_the_project_is_refused_whether_it_exists_or_not(
    place: Place, border: Border, path: str
) -> None:
    """E11"""
    evil = place.folder.parent / "p-evil"
    evil.mkdir()
    (evil / "x").write_text("secret")
    place.link("leak", "/etc/passwd")
    place.link("dir", "/")
    place.link("hop", "hop2")
    place.link("hop2", str(evil))
    with pytest.raises(Forbidden, match="outside the project") as caught:
        border.open(path)
    assert caught.value.actual_outcome is Outcome.NOT_STARTED


def test_a_missing_file_behind_a_link_out_of_the_project_is_outside_and_not_missing(
    place: Place, border: Border
) -> None:
    """E11"""
    place.link("gone", "/no/such/place")
    with pytest.raises(Forbidden, match="outside the project"):
        border.open("gone")


def test_a_link_that_stays_inside_is_followed(place: Place, border: Border) -> None:
    place.write("real/a.txt", "text")
    place.link("folder", "real")
    place.link("up/file", "../folder/a.txt")
    opened = border.open_file("up/file")
    assert opened.relative == "real/a.txt"
    assert read(opened) == b"text"


def test_a_project_that_is_itself_reached_through_a_link_works(
    place: Place, tmp_path: Path
) -> None:
    place.write("a.txt", "text")
    (tmp_path / "alias").symlink_to(place.folder)
    border = Border(str(tmp_path / "alias"), str(tmp_path / "alias/.ipc"))
    for path in ("a.txt", str(tmp_path / "alias/a.txt"), str(place.folder / "a.txt")):
        assert read(border.open_file(path)) == b"text"
    with pytest.raises(Forbidden):
        border.open(".ipc/commands")


@pytest.mark.parametrize("path", [".ipc", ".ipc/commands", "alias/commands", "sub/.ipc/x"])
def test_the_ipc_folder_is_no_target(place: Place, border: Border, path: str) -> None:
    place.link("alias", ".ipc")
    place.write("sub/.ipc/x", "another project's")
    with pytest.raises(Forbidden, match=r"\.ipc folder"):
        border.open(path)


def test_a_root_of_another_name_is_no_target_either(place: Place) -> None:
    place.write("queue/commands/x")
    border = Border(str(place.folder), str(place.folder / "queue"))
    with pytest.raises(Forbidden):
        border.open("queue/commands/x")


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000, "\ud800"])
def test_what_no_path_can_be_is_invalid(border: Border, path: str) -> None:
    with pytest.raises(InvalidArgs):
        border.open(path)


def test_a_name_too_long_for_the_disk_is_invalid(border: Border) -> None:
    with pytest.raises(InvalidArgs):
        border.open("x" * 300)


def test_what_is_not_there_is_not_found(place: Place, border: Border) -> None:
    place.write("a.txt")
    place.link("dangling", "nowhere")
    for path in ("nothing", "a.txt/below", "dangling"):
        with pytest.raises(NotFound):
            border.open(path)


def test_a_loop_of_links_ends_with_an_error(place: Place, border: Border) -> None:
    """E09"""
    place.link("self", "self")
    place.link("one", "two")
    place.link("two", "one")
    for path in ("self", "one", "two/x"):
        with pytest.raises(CommandFailure) as caught:
            border.open(path)
        assert caught.value.actual_outcome is Outcome.NOT_STARTED


def test_a_fifo_a_socket_and_a_device_are_refused_at_once(place: Place, border: Border) -> None:
    """E07"""
    os.mkfifo(place.folder / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(place.folder, os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{here}/socket")
        finally:
            os.close(here)
        for path, kind in (("fifo", "a FIFO"), ("socket", "a socket")):
            with pytest.raises(Forbidden, match=f"not a regular file: {path} is {kind}"):
                border.open(path)
    inside_dev = Border("/dev", "/dev/no-such-root")
    with pytest.raises(Forbidden, match="not a regular file: null is a device"):
        inside_dev.open("null")


def test_a_folder_is_no_regular_file(place: Place, border: Border) -> None:
    place.write("sub/a")
    with pytest.raises(Forbidden, match="not a regular file: sub is a folder"):
        border.open_file("sub")


@not_as_root
def test_an_unreadable_file_is_forbidden(place: Place, border: Border) -> None:
    place.write("secret", "x", mode=0)
    with pytest.raises(Forbidden, match="permission denied"):
        border.open("secret")


def test_a_swap_between_check_and_open_never_leads_out(place: Place, border: Border) -> None:
    """E11"""
    outside = place.folder.parent / "outside"
    outside.mkdir()
    (outside / "x").write_text("secret")
    place.write("d/x", "mine")
    folder, aside, link = place.folder / "d", place.folder / "aside", place.folder / "link"
    link.symlink_to(outside)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            folder.rename(aside)
            link.rename(folder)
            folder.rename(link)
            aside.rename(folder)

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                seen.add(read(border.open_file("d/x")))
            except CommandFailure as failure:
                seen.add(failure.code.encode())
    finally:
        done.set()
        swapper.join()
    assert seen <= {b"mine", b"forbidden", b"not_found"}
    assert b"mine" in seen


def test_a_descriptor_is_closed_with_its_block_and_with_its_last_owner(
    place: Place, border: Border
) -> None:
    place.write("a.txt")
    with border.open("a.txt") as opened:
        fd = opened.fd
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(fd)
    opened = border.open("a.txt")
    fd = opened.fd
    del opened
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(fd)


def test_names_that_are_not_utf8_are_shown_as_text() -> None:
    assert plain("a\udcffb") == "a\ufffdb"
    assert len(shown("x" * 5000)) < 400
