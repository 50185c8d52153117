"""The port between a root and whatever watches its folder.

Events are hints and the folder is the truth: an observer may tell too much, and where it may
have told too little it says so with `rescan` or `lost`.
"""

from __future__ import annotations

from typing import Protocol


class Hints(Protocol):
    """Takes what an observer saw.

    Every method is called from a watcher's thread that other roots share: none may block.
    """

    def hint(self, name: str) -> None:
        """The file of this name in the watched folder may be worth a look.

        Only names that ask to be a command come here. Bytes that are not UTF-8 are surrogates,
        as `os.fsdecode` makes them.
        """
        ...

    def rescan(self, reason: str) -> None:
        """Look at the whole folder: "poll", "overflow", or what else makes single hints useless."""
        ...

    def lost(self, reason: str) -> None:
        """The folder was removed, moved or unmounted: this observer sees nothing any more.

        Said once; a new observer is needed.
        """
        ...


class Observer(Protocol):
    """Watches one folder from `start` to `stop`; not to be started again."""

    @property
    def kind(self) -> str:
        """ "inotify", "polling" or "native"."""
        ...

    def start(self) -> None:
        """Begin; hints may come before this returns.

        Raises:
            OSError: the folder cannot be watched (gone, not a folder, no permission, limits).
        """
        ...

    def stop(self) -> None:
        """End. A hint that is on its way may still come; harmless where it never started."""
        ...

    def healthy(self) -> bool:
        """Whether it still sees the folder that lies at the path."""
        ...
