from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from fileipc.config.load import default_settings, load, settings_for_roots
from fileipc.config.settings import (
    DatabaseSettings,
    Durability,
    HandlerSettings,
    LogSettings,
    Retention,
    RootSettings,
    ScriptSettings,
)
from fileipc.errors import ConfigError

from .yaml_files import loaded, one_root, write

THE_DESIGN = """
version: 1
defaults:                      # any per-root key
  workers: 4
  ttl: 5m                      # for commands that name none
  stale_after: 1h
  settle: 5s
  durability: process          # or power
roots:
  - path: ~/src/shop/.ipc      # relative paths: from this file's folder
    name: shop                 # default: the project folder's name
    project: ~/src/shop        # default: the parent of .ipc
    project_config: false      # true: also read fileipc.yaml of the project
    allow: [ping, analyze_file, search_pattern, run_query, execute_script, summarize]
    allow_users: [me]          # owners of command files; default: the daemon's user and root
    scripts: {allow: ["scripts/*.sh"], timeout: 10m, env: [PATH, LANG], memory: 1GiB}
    databases:
      default: {url: "sqlite:///data/app.db"}              # relative to the project
      sales: {url_env: SALES_URL, timeout: 30s, max_rows: 5000}
    handlers:
      summarize: {python: "shop.ipc:summarize", timeout: 2m, idempotent: true}
      render: {exec: ["bin/render", "--json"], timeout: 5m}
    retention: {responses: 1h, archive: 7d, rejected: 30d}
log: {level: info, format: json, max_size: 20MiB, keep: 5}
stop_timeout: 30s
"""


def test_a_whole_configuration_becomes_settings(tmp_path: Path) -> None:
    settings = loaded(tmp_path, THE_DESIGN)
    home = os.path.expanduser("~")
    assert settings.source == str(tmp_path / "config.yaml")
    assert settings.log == LogSettings(level="info", format="json", max_size=20 * 1024**2, keep=5)
    assert settings.roots == (
        RootSettings(
            path=f"{home}/src/shop/.ipc",
            name="shop",
            project=f"{home}/src/shop",
            allow=(
                "ping",
                "analyze_file",
                "search_pattern",
                "run_query",
                "execute_script",
                "summarize",
            ),
            allow_users=("me",),
            scripts=ScriptSettings(
                allow=("scripts/*.sh",), timeout=600.0, env=("PATH", "LANG"), memory=1024**3
            ),
            databases={
                "default": DatabaseSettings(url="sqlite:///data/app.db"),
                "sales": DatabaseSettings(url_env="SALES_URL", timeout=30.0, max_rows=5000),
            },
            handlers={
                "summarize": HandlerSettings(
                    python="shop.ipc:summarize", timeout=120.0, idempotent=True
                ),
                "render": HandlerSettings(exec=("bin/render", "--json"), timeout=300.0),
            },
            retention=Retention(responses=3600.0, archive=7 * 86400.0, rejected=30 * 86400.0),
        ),
    )


def test_a_root_needs_nothing_but_its_path(tmp_path: Path) -> None:
    assert one_root(tmp_path) == RootSettings(
        path=f"{tmp_path}/shop/.ipc", name="shop", project=f"{tmp_path}/shop"
    )


def test_a_project_folder_means_the_ipc_folder_in_it(tmp_path: Path) -> None:
    root = loaded(tmp_path, "roots: [{path: shop/}]").roots[0]
    assert (root.path, root.project, root.name) == (
        f"{tmp_path}/shop/.ipc",
        f"{tmp_path}/shop",
        "shop",
    )


def test_relative_paths_count_from_the_files_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "roots: [{path: ../a/.ipc, project: b}]\nlog: {file: x.log}", "etc/c.yaml")
    monkeypatch.chdir(tmp_path)
    settings = load("etc/c.yaml")
    assert settings.source == f"{tmp_path}/etc/c.yaml"
    assert settings.roots[0].path == f"{tmp_path}/a/.ipc"
    assert settings.roots[0].project == f"{tmp_path}/etc/b"
    assert settings.log.file == f"{tmp_path}/etc/x.log"


def test_the_tilde_is_the_daemons_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert loaded(tmp_path, "roots: [{path: ~/x}]").roots[0].path == "/home/somebody/x/.ipc"


def test_a_root_takes_what_it_does_not_say_from_the_defaults(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        """
        defaults: {workers: 8, ttl: 1m, durability: power}
        roots:
          - {path: a/.ipc}
          - {path: b/.ipc, workers: 2}
        """,
    )
    a, b = settings.roots
    assert (a.workers, a.ttl, a.durability) == (8, 60.0, Durability.POWER)
    assert (b.workers, b.ttl, b.durability) == (2, 60.0, Durability.POWER)


def test_lists_and_maps_of_a_root_replace_those_of_the_defaults(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        """
        defaults:
          allow: [ping, run_query]
          retention: {responses: 2h, archive: 1d}
          databases: {one: {url: "sqlite:///one.db"}}
        roots:
          - path: a/.ipc
            allow: [ping]
            retention: {archive: 2d}
            databases: {two: {url: "sqlite:///two.db"}}
        """,
    )
    root = settings.roots[0]
    assert root.allow == ("ping",)
    assert root.retention == Retention(archive=2 * 86400.0)
    assert list(root.databases) == ["two"]


def test_null_takes_back_what_the_defaults_set(tmp_path: Path) -> None:
    text = "defaults: {allow: [ping]}\nroots: [{path: a/.ipc, allow: null}]"
    assert loaded(tmp_path, text).roots[0].allow is None


def test_an_inherited_type_is_dropped_where_only_another_root_has_its_handler(
    tmp_path: Path,
) -> None:
    settings = loaded(
        tmp_path,
        """
        defaults: {allow: [ping, render]}
        roots:
          - {path: a/.ipc}
          - {path: b/.ipc, handlers: {render: {exec: [bin/render]}}}
        """,
    )
    assert [root.allow for root in settings.roots] == [("ping",), ("ping", "render")]


def test_merge_keys_share_what_is_common(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        """
        roots:
          - &base
            path: a/.ipc
            workers: 9
            ttl: 1m
          - <<: *base
            path: b/.ipc
            ttl: 2m
          - <<: [{workers: 7}, *base]
            path: c/.ipc
        """,
    )
    assert [(r.name, r.workers, r.ttl) for r in settings.roots] == [
        ("a", 9, 60.0),
        ("b", 9, 120.0),
        ("c", 7, 60.0),
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_file_of_any_unicode_encoding_is_read(
    tmp_path: Path, encoding: str, newline: str
) -> None:
    """S05"""
    text = f"version: 1{newline}roots:{newline}  - path: café/.ipc{newline}"
    assert loaded(tmp_path, text.encode(encoding)).roots[0].name == "café"


def test_settings_are_frozen(tmp_path: Path) -> None:
    with pytest.raises(AttributeError):
        one_root(tmp_path).workers = 5  # type: ignore[misc]


def test_without_configuration_the_ipc_folder_here_is_served_with_nothing_dangerous() -> None:
    settings = default_settings("/srv/shop")
    assert settings.source is None
    assert settings.roots == (
        RootSettings(path="/srv/shop/.ipc", name="shop", project="/srv/shop"),
    )
    root = settings.roots[0]
    assert (root.scripts.allow, root.handlers, root.databases) == ((), {}, {})
    assert default_settings("/srv/shop/.ipc") == settings


def test_roots_of_the_command_line_may_be_ipc_or_project_folders() -> None:
    settings = settings_for_roots(["a", "b/.ipc", "/c/"], cwd="/srv")
    assert [(root.path, root.name) for root in settings.roots] == [
        ("/srv/a/.ipc", "a"),
        ("/srv/b/.ipc", "b"),
        ("/c/.ipc", "c"),
    ]


def test_a_link_to_an_ipc_folder_means_that_folder(tmp_path: Path) -> None:
    (tmp_path / "shop" / ".ipc").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "shop" / ".ipc")
    assert settings_for_roots(["link"], cwd=str(tmp_path)).roots[0].path == f"{tmp_path}/shop/.ipc"


def test_roots_of_the_command_line_get_names_of_their_own() -> None:
    settings = settings_for_roots(["/a/shop", "/b/shop", "/c/Shop", "/"], cwd="/")
    assert [root.name for root in settings.roots] == ["shop", "shop-2", "Shop-3", "root"]


def test_a_root_named_twice_on_the_command_line_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"the same folder as --root /a/\.ipc") as caught:
        settings_for_roots(["/a", "/a/.ipc"], cwd="/")
    assert len(caught.value.problems) == 1


def test_a_path_of_the_command_line_that_is_no_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="not UTF-8"):
        settings_for_roots(["/a\udcff"], cwd="/")


def test_a_root_of_the_command_line_takes_its_settings_from_the_file(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
        defaults: {workers: 8}
        roots:
          - {path: a/.ipc, name: alpha, ttl: 1m}
          - {path: b/.ipc}
        stop_timeout: 5s
        """,
    )
    settings = settings_for_roots(["c", "a"], cwd=str(tmp_path), config=file)
    assert [(root.name, root.workers, root.ttl) for root in settings.roots] == [
        ("c", 8, 300.0),
        ("alpha", 8, 60.0),
    ]
    assert settings.stop_timeout == 5.0


def test_a_file_of_nothing_but_defaults_will_do_for_roots_of_the_command_line(
    tmp_path: Path,
) -> None:
    file = write(tmp_path, "defaults: {workers: 8}")
    assert settings_for_roots(["a"], cwd="/", config=file).roots[0].workers == 8
    with pytest.raises(ConfigError, match="roots: missing"):
        load(file)


def test_a_folder_name_that_is_no_good_name_is_mended() -> None:
    long = "x" * 100
    names = [root.name for root in settings_for_roots([f"/{long}", "/ a "], cwd="/").roots]
    assert names == ["x" * 64, "a"]


def test_the_settings_of_a_file_do_not_depend_on_how_its_units_are_written(tmp_path: Path) -> None:
    plain = loaded(tmp_path, "roots: [{path: a, ttl: 90, limits: {inline: 1_048_576}}]")
    units = loaded(tmp_path, 'roots: [{path: a, ttl: 1m30s, limits: {inline: "1MiB"}}]')
    assert msgspec.structs.asdict(plain) == msgspec.structs.asdict(units)
