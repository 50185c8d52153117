from __future__ import annotations

import os
from pathlib import Path

import pytest

from fileipc.config.load import apply_project_config, load
from fileipc.config.settings import HandlerSettings, RootSettings, Settings
from fileipc.errors import ConfigError, Problem

from .yaml_files import write

ON = "project_config: true"


def served(folder: Path, project_file: str | bytes, keys: str = ON) -> Settings:
    write(folder, project_file, "shop/fileipc.yaml")
    return load(main_file(folder, keys))


def main_file(folder: Path, keys: str = ON) -> str:
    return write(folder, f"roots: [{{path: shop/.ipc, {keys}}}]")


def only_problem(folder: Path, project_file: str | bytes, keys: str = ON) -> Problem:
    with pytest.raises(ConfigError) as caught:
        served(folder, project_file, keys)
    (problem,) = caught.value.problems
    return problem


def test_the_projects_keys_replace_those_of_the_daemons_configuration(tmp_path: Path) -> None:
    settings = served(
        tmp_path,
        """
        version: 1
        workers: 2
        handlers: {render: {exec: [bin/render]}}
        """,
        f"{ON}, workers: 8, ttl: 1m, handlers: {{summarize: {{python: 'a:b'}}}}",
    )
    root = settings.roots[0]
    assert (root.workers, root.ttl) == (2, 60.0)
    assert root.handlers == {"render": HandlerSettings(exec=("bin/render",))}


def test_the_projects_file_is_not_read_unless_the_configuration_says_so(tmp_path: Path) -> None:
    assert served(tmp_path, "workers: 2", "workers: 8").roots[0].workers == 8
    assert served(tmp_path, b"\xff broken", "workers: 8").roots[0].workers == 8


def test_the_file_lies_beside_the_ipc_folder_wherever_the_project_is(tmp_path: Path) -> None:
    write(tmp_path, "workers: 3", "elsewhere/fileipc.yaml")
    root = served(tmp_path, "workers: 2", f"{ON}, project: elsewhere").roots[0]
    assert root.workers == 2


def test_a_project_without_the_file_is_served_as_configured(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    assert load(main_file(tmp_path)).roots[0].workers == 4


def test_an_empty_project_file_is_an_error_and_not_silence(tmp_path: Path) -> None:
    assert only_problem(tmp_path, "").message == "the file is empty"


@pytest.mark.parametrize(
    "key",
    [
        "path: x",
        "name: x",
        "project: /",
        "project_config: true",
        "allow_users: [me]",
        "allow_groups: []",
        "mode: group",
        "durability: power",
    ],
)
def test_what_only_the_daemons_owner_may_decide_is_refused(tmp_path: Path, key: str) -> None:
    problem = only_problem(tmp_path, f"workers: 2\n{key}\n")
    assert problem.file == str(tmp_path / "shop" / "fileipc.yaml")
    assert (problem.line, problem.key) == (2, key.split(":", 1)[0])
    assert "only the daemon's own configuration may set this" in problem.message


def test_faults_of_both_files_are_told_together_each_with_its_file_and_line(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError) as caught:
        served(tmp_path, "workers: 2\nworkrs: 3\n", f"{ON}, ttl: never")
    assert [(p.file, p.line, p.key) for p in caught.value.problems] == [
        (str(tmp_path / "config.yaml"), 1, "roots[0].ttl"),
        (str(tmp_path / "shop" / "fileipc.yaml"), 2, "workrs"),
    ]


def test_yaml_that_is_broken_is_told_with_the_projects_file_and_line(tmp_path: Path) -> None:
    problem = only_problem(tmp_path, "workers: 2\n\tttl: 1m\n")
    assert problem.file == str(tmp_path / "shop" / "fileipc.yaml")
    assert problem.line == 2


def test_a_list_in_the_projects_file_is_refused(tmp_path: Path) -> None:
    assert "expected a mapping" in only_problem(tmp_path, "- workers").message


def test_the_daemons_configuration_may_allow_what_the_project_configures(tmp_path: Path) -> None:
    text = "handlers: {render: {exec: [bin/render]}}"
    root = served(tmp_path, text, f"{ON}, allow: [ping, render]").roots[0]
    assert root.allow == ("ping", "render")
    problem = only_problem(tmp_path, "workers: 1", f"{ON}, allow: [ping, render]")
    assert problem.key == "roots[0].allow[1]"


def test_the_project_may_allow_only_what_exists(tmp_path: Path) -> None:
    problem = only_problem(tmp_path, "allow: [ping, rendr]")
    assert (problem.file, problem.key) == (str(tmp_path / "shop" / "fileipc.yaml"), "allow[1]")


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    file = write(tmp_path, "workers: 2", "shop/fileipc.yaml")
    Path(file).chmod(mode)
    with pytest.raises(ConfigError, match=f"others may write it \\(mode {mode:04o}\\)"):
        load(main_file(tmp_path))


def test_a_file_that_others_may_only_read_is_taken(tmp_path: Path) -> None:
    Path(write(tmp_path, "workers: 2", "shop/fileipc.yaml")).chmod(0o644)
    assert load(main_file(tmp_path)).roots[0].workers == 2


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    os.chown(write(tmp_path, "workers: 2", "shop/fileipc.yaml"), 54321, -1)
    with pytest.raises(ConfigError, match="belongs to uid 54321"):
        load(main_file(tmp_path))


def test_a_link_is_refused_even_to_a_file_that_would_do(tmp_path: Path) -> None:
    write(tmp_path, "workers: 2", "real.yaml")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "fileipc.yaml").symlink_to(tmp_path / "real.yaml")
    with pytest.raises(ConfigError, match="is a symbolic link"):
        load(main_file(tmp_path))


def test_a_pipe_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    os.mkfifo(tmp_path / "shop" / "fileipc.yaml", 0o600)
    with pytest.raises(ConfigError, match="is not a regular file"):
        load(main_file(tmp_path))


def test_a_folder_of_that_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop" / "fileipc.yaml").mkdir(parents=True, mode=0o700)
    with pytest.raises(ConfigError, match="is not a regular file"):
        load(main_file(tmp_path))


def test_a_project_that_is_not_there_yet_is_read_when_it_appears(tmp_path: Path) -> None:
    root = load(main_file(tmp_path, f"{ON}, allow: [ping, render]")).roots[0]
    assert root.allow == ("ping", "render")
    write(tmp_path, "workers: 2\nhandlers: {render: {exec: [bin/render]}}\n", "shop/fileipc.yaml")
    later = apply_project_config(root)
    assert later.workers == 2
    assert later.handlers == {"render": HandlerSettings(exec=("bin/render",))}
    assert apply_project_config(later) == later


def test_a_project_that_appears_without_what_was_allowed_is_refused(tmp_path: Path) -> None:
    root = load(main_file(tmp_path, f"{ON}, allow: [ping, render]")).roots[0]
    (tmp_path / "shop").mkdir()
    with pytest.raises(ConfigError, match="allow: render is neither"):
        apply_project_config(root)


def test_a_project_that_appears_with_a_bad_file_is_refused(tmp_path: Path) -> None:
    root = load(main_file(tmp_path)).roots[0]
    write(tmp_path, "workers: 0", "shop/fileipc.yaml")
    with pytest.raises(ConfigError, match=r"fileipc\.yaml:1: workers: expected"):
        apply_project_config(root)


def test_reading_again_is_nothing_where_it_is_switched_off(tmp_path: Path) -> None:
    write(tmp_path, "workers: 0", "shop/fileipc.yaml")
    root = RootSettings(path=f"{tmp_path}/shop/.ipc", name="shop", project=f"{tmp_path}/shop")
    assert apply_project_config(root) is root
