from __future__ import annotations

import grp
import os
import pwd

import pytest

from fileipc.config.owners import Owners, group_id, user_id
from fileipc.config.settings import RootSettings

STRANGER = 3_999_999_999


def owners(users: tuple[str, ...] = (), groups: tuple[str, ...] = ()) -> Owners:
    return Owners(
        RootSettings(path="/p/.ipc", name="p", project="/p", allow_users=users, allow_groups=groups)
    )


def test_by_default_the_daemons_user_and_root_may_ask() -> None:
    default = owners()
    assert default.allows(os.geteuid())
    assert default.allows(0)
    assert not default.allows(STRANGER)


def test_naming_users_replaces_the_default() -> None:
    only = owners(users=(str(STRANGER),))
    assert only.allows(STRANGER)
    assert not only.allows(os.geteuid())


def test_me_is_the_daemons_own_user() -> None:
    assert user_id("me") == os.geteuid()
    assert owners(users=("me",)).allows(os.geteuid())


def test_users_and_groups_are_known_by_name_and_by_number() -> None:
    someone = pwd.getpwuid(0)
    group = grp.getgrgid(someone.pw_gid)
    assert user_id(someone.pw_name) == 0
    assert user_id("12345") == 12345
    assert group_id(group.gr_name) == group.gr_gid
    assert group_id("12345") == 12345
    assert user_id("zzqqxx") is None
    assert group_id("zzqqxx") is None
    assert user_id("-1") is None


def test_a_group_stands_for_its_members() -> None:
    members = [(name, group.gr_gid) for group in grp.getgrall() for name in group.gr_mem]
    members += [(user.pw_name, user.pw_gid) for user in pwd.getpwall()]
    known = [(name, gid) for name, gid in members if _uid(name) not in (None, os.geteuid(), 0)]
    if not known:
        pytest.skip("this machine has no other user")
    name, gid = known[0]
    uid = _uid(name)
    assert uid is not None
    assert owners(groups=(str(gid),)).allows(uid)
    assert not owners().allows(uid)


def test_a_group_comes_beside_the_default_users() -> None:
    both = owners(groups=("54321",))
    assert both.allows(os.geteuid())
    assert not both.allows(STRANGER)


def _uid(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None
