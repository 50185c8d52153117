from __future__ import annotations

import os
from pathlib import Path

import pytest

from fileipc.config.load import find_config
from fileipc.errors import ConfigError

from .yaml_files import write


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """One file in each place that is looked at."""
    return {
        "explicit": write(tmp_path, "", "given.yaml"),
        "variable": write(tmp_path, "", "variable.yaml"),
        "xdg": write(tmp_path, "", "xdg/fileipc/config.yaml"),
        "home": write(tmp_path, "", "home/.config/fileipc/config.yaml"),
        "system": write(tmp_path, "", "etc/config.yaml"),
    }


def test_the_places_are_looked_at_in_order(tmp_path: Path, places: dict[str, str]) -> None:
    environ = {
        "FILEIPC_CONFIG": places["variable"],
        "XDG_CONFIG_HOME": str(tmp_path / "xdg"),
        "HOME": str(tmp_path / "home"),
    }
    system = places["system"]
    assert find_config(places["explicit"], environ, system=system) == places["explicit"]
    assert find_config(None, environ, system=system) == places["variable"]
    del environ["FILEIPC_CONFIG"]
    assert find_config(None, environ, system=system) == places["xdg"]
    environ["XDG_CONFIG_HOME"] = "relative/is/ignored"
    assert find_config(None, environ, system=system) == places["home"]
    environ["HOME"] = str(tmp_path / "nowhere")
    assert find_config(None, environ, system=system) == system
    assert find_config(None, environ, system=str(tmp_path / "none")) is None


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path, places: dict[str, str]) -> None:
    missing = str(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match=r"missing\.yaml: --config: there is no such file"):
        find_config(missing, {}, system=places["system"])
    with pytest.raises(ConfigError, match=r"\$FILEIPC_CONFIG: there is no such file"):
        find_config(None, {"FILEIPC_CONFIG": missing}, system=places["system"])
    with pytest.raises(ConfigError, match="--config"):
        find_config("", {}, system=places["system"])


def test_an_empty_variable_is_no_variable(places: dict[str, str], tmp_path: Path) -> None:
    environ = {"FILEIPC_CONFIG": "", "XDG_CONFIG_HOME": "", "HOME": str(tmp_path / "home")}
    assert find_config(None, environ, system=places["system"]) == places["home"]


def test_the_path_is_absolute_so_that_a_detached_daemon_finds_it_again(
    tmp_path: Path, places: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_config("given.yaml", {}) == places["explicit"]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_config("~/given.yaml", {}) == places["explicit"]


def test_a_link_to_nowhere_is_found_so_that_loading_it_tells(tmp_path: Path) -> None:
    (tmp_path / ".config" / "fileipc").mkdir(parents=True)
    link = tmp_path / ".config" / "fileipc" / "config.yaml"
    link.symlink_to(tmp_path / "nowhere")
    assert find_config(None, {"HOME": str(tmp_path)}) == str(link)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may search every folder")
def test_a_place_that_cannot_be_searched_is_not_passed_over(tmp_path: Path) -> None:
    closed = tmp_path / ".config" / "fileipc"
    closed.mkdir(parents=True)
    closed.chmod(0)
    try:
        assert find_config(None, {"HOME": str(tmp_path)}) == str(closed / "config.yaml")
    finally:
        closed.chmod(0o700)
