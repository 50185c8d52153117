"""What is shipped beside the code agrees with it."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import fileipc
from fileipc.cli.common import ExitCode
from fileipc.config.settings import Settings

from .conftest import Shell
from .generate import schemas
from .readme import REPOSITORY, Document, code_spans

SOURCE = Path(fileipc.__file__).parent
UNIT = REPOSITORY / "packaging" / "systemd" / "fileipc.service"
LONGEST_MODULE = 350  # lines: what can be read in one sitting


def project() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


@pytest.mark.parametrize("name", ["command", "response", "config"])
def test_the_shipped_schemas_are_what_the_command_prints(shell: Shell, name: str) -> None:
    """`python -m tests.docs.generate` brings them up to date."""
    shipped = (REPOSITORY / "config" / f"{name}.schema.json").read_text()
    assert shell.run("fileipc", "schema", name, cwd=Path.cwd()) == shipped
    assert schemas()[f"{name}.schema.json"] == shipped


def test_the_example_configuration_fits_the_shipped_schema() -> None:
    schema = json.loads((REPOSITORY / "config" / "config.schema.json").read_text())
    jsonschema.validate(
        yaml.safe_load((REPOSITORY / "config" / "example.yaml").read_text()), schema
    )


def test_no_module_is_too_long_to_read() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    long = {str(path): length for path, length in lengths.items() if length > LONGEST_MODULE}
    assert long == {}


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT)
    return parser


def test_the_unit_starts_the_daemon_and_does_not_insist_on_a_wrong_configuration() -> None:
    service = unit()["Service"]
    assert service["ExecStart"] == "%h/.local/bin/fileipc run"
    assert int(service["RestartPreventExitStatus"]) == ExitCode.CONFIG
    assert service["Restart"] == "on-failure"


def test_the_unit_waits_longer_than_the_daemon_takes_to_stop() -> None:
    service = unit()["Service"]
    assert int(service["TimeoutStopSec"]) > Settings().stop_timeout + 15
    assert service["KillMode"] == "mixed"


def verified(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", "verify", "--user", "--recursive-errors=no", path],
        env={**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
def test_systemd_knows_every_key_of_the_unit(tmp_path: Path) -> None:
    program = tmp_path / ".local" / "bin" / "fileipc"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    plain = tmp_path / "plain.service"
    plain.write_text("[Service]\nExecStart=/bin/true\n")
    if verified(plain, tmp_path).returncode != 0:
        pytest.skip("systemd-analyze verify does not work here")
    plain.write_text("[Service]\nExecStart=/bin/true\nNonsense=1\n")
    assert verified(plain, tmp_path).returncode != 0  # it would see a wrong key
    done = verified(UNIT, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_changelog_begins_with_this_version() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text()
    found = re.search(r"^## \[([^]]+)\]", text, re.MULTILINE)
    assert found is not None
    assert found[1] == fileipc.__version__ == project()["project"]["version"]


def test_contributing_explains_every_dependency_and_every_package() -> None:
    document = Document("CONTRIBUTING.md")
    explained = [
        code_spans(row[0])[0]
        for row in document.table("Dependencies", "package", "why, and the runner-up")
    ]
    wanted = [re.split(r"[<>=~! ]", text)[0] for text in project()["project"]["dependencies"]]
    assert sorted(explained) == sorted(wanted)
    listed = {
        name.rstrip("/")
        for row in document.table("Layers", "part", "what it is", "may import")
        for name in code_spans(row[0])
    }
    parts = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert listed == parts | {"worker.py", "errors.py"}


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "packaging/README.md", "CHANGELOG.md"])
def test_links_of_the_other_documents_lead_somewhere(name: str) -> None:
    document = Document(name)
    for link in document.links():
        if "://" not in link and not link.startswith("#"):
            assert (document.path.parent / link).exists(), link
