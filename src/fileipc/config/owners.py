"""Whose command files a root takes: users and groups by name, or by number as text."""

from __future__ import annotations

import grp
import os
import pwd

from .settings import Mode, RootSettings

ME = "me"
_ROOT_UID = 0


def user_id(name: str) -> int | None:
    """The uid of a user's name, of `me` (the daemon's own user) or of digits; None: unknown."""
    if name == ME:
        return os.geteuid()
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return _number(name)


def group_id(name: str) -> int | None:
    """The gid of a group's name or of digits; None: unknown."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return _number(name)


def user_names() -> list[str]:
    return [ME, *(entry.pw_name for entry in pwd.getpwall())]


def group_names() -> list[str]:
    return [entry.gr_name for entry in grp.getgrall()]


class Owners:
    """Tells whether a file of a given owner may ask for work in a root.

    With neither users nor groups configured: the daemon's user and root, and in `mode: group`
    the members of `folder_group`, the gid of the root's folder. A group stands for its members,
    not for the group of the file, which any folder with the setgid bit hands out.
    """

    def __init__(self, root: RootSettings, folder_group: int | None = None) -> None:
        users = {user_id(name) for name in root.allow_users}
        groups = {group_id(name) for name in root.allow_groups}
        if not root.allow_users:
            users |= {os.geteuid(), _ROOT_UID}
        if root.mode is Mode.GROUP and not root.allow_users and not root.allow_groups:
            groups.add(folder_group)
        self._users = frozenset(uid for uid in users if uid is not None)
        self._groups = frozenset(gid for gid in groups if gid is not None)
        self._known: dict[int, bool] = {}

    def allows(self, uid: int) -> bool:
        """Group memberships are looked up once for each uid and then remembered."""
        if uid in self._users:
            return True
        if not self._groups:
            return False
        if uid not in self._known:
            self._known[uid] = not self._groups.isdisjoint(_groups_of(uid))
        return self._known[uid]


def _groups_of(uid: int) -> list[int]:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return []
    return os.getgrouplist(entry.pw_name, entry.pw_gid)


def _number(name: str) -> int | None:
    return int(name) if name.isascii() and name.isdigit() and len(name) <= 10 else None
