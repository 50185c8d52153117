"""What the janitor removes: by age, a bounded number at a time.

Age is taken from the inode's change time where a copied modification time could lie.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from ..protocol.names import command_stem
from ..protocol.times import day
from .layout import DAEMON_HOLDER, DAEMON_LOCK, LOCK_SUFFIX
from .store import Spool


@dataclass(frozen=True, slots=True)
class Ages:
    """Seconds after which things go."""

    responses: float
    archive: float
    rejected: float
    temporaries: float


@dataclass(frozen=True, slots=True)
class Swept:
    """How many files (or days) went."""

    responses: int = 0
    days: int = 0
    rejected: int = 0
    temporaries: int = 0

    @property
    def total(self) -> int:
        return self.responses + self.days + self.rejected + self.temporaries


def sweep(
    spool: Spool,
    ages: Ages,
    *,
    now: float,
    is_claimed: Callable[[str], bool],
    at_most: int = 5000,
) -> Swept:
    """Remove what is past its age.

    Args:
        now: seconds since 1970.
        is_claimed: whether the daemon runs the command of this id at the moment; its files are
            never touched.
        at_most: files removed in one sweep from each folder; the rest waits for the next.
    """
    layout = spool.layout
    return Swept(
        responses=_sweep_responses(spool, now - ages.responses, is_claimed, at_most),
        days=_sweep_days(spool, day(now - ages.archive), at_most),
        rejected=_sweep_folder(layout.rejected, now - ages.rejected, lambda _name: True, at_most),
        temporaries=_sweep_temporaries(spool, now - ages.temporaries, is_claimed, at_most),
    )


def _sweep_responses(
    spool: Spool, before: float, is_claimed: Callable[[str], bool], at_most: int
) -> int:
    def removable(name: str) -> bool:
        stem = name.removesuffix(".json").removesuffix(".result")
        return name.endswith(".json") and not name.startswith(".") and not is_claimed(stem)

    return _sweep_folder(spool.layout.responses, before, removable, at_most)


def _sweep_days(spool: Spool, oldest: str, at_most: int) -> int:
    """Remove archive days, oldest first; a large one goes in several sweeps."""
    count, budget = 0, at_most
    for name in sorted(each for each in spool.load_days() if each < oldest):
        folder = f"{spool.layout.archive}/{name}"
        for entry in os.listdir(folder)[:budget]:
            with suppress(OSError):
                _remove(f"{folder}/{entry}")
            budget -= 1
        if budget <= 0:
            break
        with suppress(OSError):
            os.rmdir(folder)
            count += 1
    spool.load_days()
    return count


def _sweep_temporaries(
    spool: Spool, before: float, is_claimed: Callable[[str], bool], at_most: int
) -> int:
    """Leftovers: what is no command in `commands/`, hidden files elsewhere, stray claims."""
    layout = spool.layout

    def hidden(name: str) -> bool:
        return name.startswith(".")

    def stray(name: str) -> bool:
        if name in (DAEMON_LOCK, DAEMON_HOLDER):
            return False
        stem = name.removesuffix(LOCK_SUFFIX)
        claim = spool.claims.read(stem)
        names = {f"{stem}.json", claim.file if claim else ""} - {""}
        return not is_claimed(stem) and not any(map(spool.exists, names))

    def written(name: str) -> bool:
        return name.startswith(".") and name.endswith(".tmp")

    count = _sweep_folder(layout.path, before, written, at_most)
    count += _sweep_folder(
        layout.commands, before, lambda name: command_stem(name) is None, at_most
    )
    count += _sweep_folder(layout.responses, before, hidden, at_most)
    count += _sweep_folder(layout.locks, before, stray, at_most)
    with suppress(FileNotFoundError):
        count += _sweep_folder(f"{layout.archive}/{day(before)}", before, hidden, at_most)
    return count


def _sweep_folder(
    folder: str, before: float, removable: Callable[[str], bool], at_most: int
) -> int:
    count = 0
    for name in _old_files(folder, before):
        if count >= at_most:
            break
        if removable(name):
            with suppress(OSError):
                _remove(f"{folder}/{name}")
                count += 1
    return count


def _old_files(folder: str, before: float) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if found.st_ctime < before:
                yield entry.name


def _remove(path: str) -> None:
    if stat.S_ISDIR(os.stat(path, follow_symlinks=False).st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)
