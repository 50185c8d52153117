"""The daemon's side of a root: each step whole, each step repeatable, nothing followed."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from fileipc.errors import InvalidCommand, RootError, RootMissing, TooLarge
from fileipc.protocol.models import Claim
from fileipc.spool.atomic import GROUP, PRIVATE, Writer
from fileipc.spool.create import create_root, prepare_root
from fileipc.spool.layout import Layout
from fileipc.spool.store import Final, Spool

ID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
NAME = f"{ID}.json"
DAY = "2026-05-17"


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    layout, writer = Layout(str(tmp_path / ".ipc")), Writer()
    create_root(layout, writer)
    prepare_root(layout, writer)
    return Spool(layout, writer)


def put(spool: Spool, data: bytes, name: str = NAME) -> Path:
    path = Path(spool.layout.command(name))
    path.write_bytes(data)
    return path


def claim(attempt: int = 1) -> Claim:
    return Claim(owner="me", pid=1, host="h", attempt=attempt, claimed_at="t", file=NAME)


def test_a_root_is_private_and_keeps_itself_out_of_git(spool: Spool) -> None:
    for folder in spool.layout.folders:
        assert os.stat(folder).st_mode & 0o777 == 0o700
    assert "*" in Path(spool.layout.path, ".gitignore").read_text()


@pytest.mark.parametrize("umask", [0, 0o777, 0o027])
@pytest.mark.parametrize(
    ("modes", "folder", "file"), [(PRIVATE, 0o700, 0o600), (GROUP, 0o2750, 0o640)]
)
def test_modes_do_not_depend_on_the_umask(
    tmp_path: Path, umask: int, modes: object, folder: int, file: int
) -> None:
    writer = Writer(GROUP if modes is GROUP else PRIVATE)
    layout = Layout(str(tmp_path / ".ipc"))
    before = os.umask(umask)
    try:
        create_root(layout, writer)
        prepare_root(layout, writer)
        writer.replace(layout.response("a"), b"{}")
    finally:
        os.umask(before)
    assert os.stat(layout.archive).st_mode & 0o7777 == folder
    assert os.stat(layout.response("a")).st_mode & 0o7777 == file


def test_an_existing_root_is_prepared_again_without_harm(spool: Spool) -> None:
    put(spool, b"{}")
    prepare_root(spool.layout, spool.writer)
    assert list(spool.names()) == [NAME]


def test_a_missing_root_is_not_made_under_a_bare_mount_point(tmp_path: Path) -> None:
    """Case V08."""
    with pytest.raises(RootMissing):
        prepare_root(Layout(str(tmp_path / "mnt" / ".ipc")), Writer())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("which", ["commands", "responses", "archive", "locks", "log"])
def test_a_folder_that_is_a_link_is_refused(spool: Spool, tmp_path: Path, which: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = Path(spool.layout.path, which)
    folder.rename(tmp_path / "old")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RootError, match="symbolic link"):
        prepare_root(spool.layout, spool.writer)


def test_a_file_is_read_with_its_arrival_and_not_its_travelled_age(spool: Spool) -> None:
    """Case S14."""
    path = put(spool, b"{}")
    os.utime(path, (0, 0))
    assert spool.read(NAME, 100).arrival > 1e9


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "link", "device"])
def test_what_is_no_regular_file_is_refused_at_once(spool: Spool, kind: str) -> None:
    """Case E07."""
    path = spool.layout.command(NAME)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        os.mkdir(path)
    elif kind == "socket":
        server = socket.socket(socket.AF_UNIX)
        here = os.getcwd()
        os.chdir(os.path.dirname(path))  # socket paths are short
        server.bind(NAME)
        os.chdir(here)
        server.close()
    else:
        os.symlink("/dev/zero" if kind == "device" else "/etc/hostname", path)
    with pytest.raises(InvalidCommand, match="regular"):
        spool.read(NAME, 100)
    kept = spool.reject(NAME, {"why": kind})
    assert os.path.lexists(f"{spool.layout.rejected}/{kept}")
    assert os.path.exists(f"{spool.layout.rejected}/{kept}.reason.json")


def test_an_oversized_file_is_refused_unread(spool: Spool) -> None:
    put(spool, b"x" * 101)
    with pytest.raises(TooLarge, match="101"):
        spool.read(NAME, 100)


def test_a_writer_at_work_is_seen_until_it_closes(spool: Spool) -> None:
    path = put(spool, b"{")
    with path.open("ab"):
        assert spool.writer_at_work(NAME) is True
    assert spool.writer_at_work(NAME) is False


def test_a_claim_is_made_once(spool: Spool) -> None:
    claims = spool.claims
    assert claims.take(ID, claim())
    assert not claims.take(ID, claim())
    claims.retake(ID, claim(2))
    found = claims.read(ID)
    assert found is not None
    assert found.attempt == 2
    assert claims.ids() == [ID]
    claims.release(ID)
    claims.release(ID)
    assert claims.ids() == []


def test_a_released_claims_file_serves_the_next_and_a_kept_one_keeps_its_content(
    spool: Spool,
) -> None:
    other = ID.replace("3f", "4f")
    assert spool.claims.take(ID, claim(7))
    assert spool.claims.take(other, claim(8))
    spool.claims.release(other)
    assert spool.claims.take(other, claim(9))
    kept = [spool.claims.read(each) for each in (ID, other)]
    assert [each.attempt for each in kept if each] == [7, 9]
    for name in os.listdir(spool.layout.locks):
        if name.endswith(".tmp"):
            os.unlink(f"{spool.layout.locks}/{name}")  # tidied away by a careless hand
    spool.claims.release(other)
    assert spool.claims.take(other, claim(10))
    spool.claims.close()
    assert sorted(os.listdir(spool.layout.locks)) == sorted([f"{ID}.lock", f"{other}.lock"])
    assert spool.claims.read(ID) == claim(7)


def test_settling_twice_is_the_same_as_once(spool: Spool) -> None:
    put(spool, b"{}")
    file = spool.read(NAME, 100)
    final = Final(ID, DAY)
    for _ in range(2):
        spool.commit(ID, DAY, b'{"done":1}', None)
        spool.publish_final(final)
        assert spool.archive_command(final, NAME, file)
    assert Path(spool.layout.response(ID)).read_bytes() == b'{"done":1}'
    assert Path(spool.layout.archived_command(DAY, ID)).read_bytes() == b"{}"
    assert spool.find_final(ID) == final
    assert list(spool.names()) == []
    leftovers = [
        name for _, _, names in os.walk(spool.layout.path) for name in names if ".tmp" in name
    ]
    assert leftovers == []


def test_a_response_replaces_a_link_and_does_not_follow_it(spool: Spool, tmp_path: Path) -> None:
    """Case S11."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.symlink(victim, spool.layout.response(ID))
    spool.commit(ID, DAY, b"{}", None)
    spool.publish_final(Final(ID, DAY))
    assert victim.read_text() == "precious"
    assert not os.path.islink(spool.layout.response(ID))


def test_what_ran_is_what_is_archived_where_the_file_was_replaced(spool: Spool) -> None:
    """Case A02."""
    put(spool, b'{"first": 1}')
    file = spool.read(NAME, 100)
    os.rename(put(spool, b'{"second": 2}', "other.json"), spool.layout.command(NAME))
    assert not spool.archive_command(Final(ID, DAY), NAME, file) if _day(spool) else True
    assert Path(spool.layout.archived_command(DAY, ID)).read_bytes() == b'{"first": 1}'
    assert Path(spool.layout.command(NAME)).read_bytes() == b'{"second": 2}'


def test_a_touched_or_rewritten_file_is_still_the_same_command(spool: Spool) -> None:
    """Case W06."""
    path = put(spool, b"{}")
    file = spool.read(NAME, 100)
    _day(spool)
    path.write_bytes(b"{}")
    os.utime(path)
    assert spool.archive_command(Final(ID, DAY), NAME, file)
    assert not path.exists()


def test_a_command_removed_while_it_ran_is_archived_from_memory(spool: Spool) -> None:
    path = put(spool, b"{}")
    file = spool.read(NAME, 100)
    _day(spool)
    path.unlink()
    assert spool.archive_command(Final(ID, DAY), NAME, file)
    assert Path(spool.layout.archived_command(DAY, ID)).read_bytes() == b"{}"


def test_rejecting_the_same_file_again_changes_nothing(spool: Spool) -> None:
    put(spool, b"junk", "junk.json")
    kept = spool.reject("junk.json", {"code": "x"})
    with pytest.raises(FileNotFoundError):
        spool.reject("junk.json", {"code": "x"})
    assert sorted(os.listdir(spool.layout.rejected)) == [kept, f"{kept}.reason.json"]


def test_a_name_of_any_bytes_can_be_rejected(spool: Spool) -> None:
    name = os.fsdecode(b"\xff\n\x1b[31m" + b"x" * 200 + b".json")
    put(spool, b"", name)
    kept = spool.reject(name, {"code": "x"})
    assert kept.isascii()
    assert os.path.exists(f"{spool.layout.rejected}/{kept}")


def test_power_durability_writes_the_same_files(tmp_path: Path) -> None:
    layout, writer = Layout(str(tmp_path / ".ipc")), Writer(durable=True)
    create_root(layout, writer)
    prepare_root(layout, writer)
    spool = Spool(layout, writer)
    put(spool, b"{}")
    spool.claims.take(ID, claim())
    spool.commit(ID, DAY, b"{}", b"[1]")
    spool.publish_final(Final(ID, DAY))
    assert Path(layout.result(ID)).read_bytes() == b"[1]"


def _day(spool: Spool) -> bool:
    spool.writer.folder(f"{spool.layout.archive}/{DAY}")
    return True
