from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from msgspec import structs

from fileipc.config.load import default_settings, load
from fileipc.config.schema import config_schema
from fileipc.config.settings import Settings
from fileipc.config.show import dump, effective

from .shapes import documents
from .test_load import THE_DESIGN
from .yaml_files import loaded, one_root, write

quiet = settings(database=None, deadline=None, max_examples=100)
VALIDATOR = Draft202012Validator(config_schema())


def anywhere(made: Settings) -> Settings:
    return structs.replace(made, source=None)


def test_what_is_shown_loads_again_as_the_same_settings(tmp_path: Path) -> None:
    first = loaded(tmp_path, THE_DESIGN)
    assert anywhere(loaded(tmp_path, dump(first, mask=False))) == anywhere(first)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("show")


@quiet
@given(made=documents())
def test_any_right_configuration_fits_the_schema_and_survives_being_shown(
    scratch: Path, made: dict[str, Any]
) -> None:
    VALIDATOR.validate(made)
    first = load(write(scratch, yaml.safe_dump(made).encode()))
    shown = effective(first, mask=False)
    VALIDATOR.validate(shown)
    assert anywhere(load(write(scratch, dump(first, mask=False).encode()))) == anywhere(first)


def test_the_defaults_are_shown_in_readable_units(tmp_path: Path) -> None:
    shown = effective(default_settings("/srv/shop"))
    root = shown["roots"][0]
    assert (root["ttl"], root["max_pending"]) == ("5m", 100_000)
    assert (root["limits"]["command"], root["retention"]["archive"]) == ("1MiB", "7d")
    assert "memory" not in root["scripts"]
    assert anywhere(loaded(tmp_path, dump(default_settings("/srv/shop")))) == anywhere(
        default_settings("/srv/shop")
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:se:c@r/et@host/db", "postgresql://me:***@host/db"),
        ("postgresql://:secret@host/db", "postgresql://:***@host/db"),
        ("x://h/d?user=a&password=secret&b=c", "x://h/d?user=a&password=***&b=c"),
        ("x://h/d?Token=secret", "x://h/d?Token=***"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("sqlite:///data/a@b:c.db", "sqlite:///data/a@b:c.db"),
    ],
)
def test_passwords_are_masked_where_they_are_shown(tmp_path: Path, url: str, shown: str) -> None:
    one_root(tmp_path, 'databases: {d: {url: "sqlite:///a.db"}}')
    made = load(str(tmp_path / "config.yaml"))
    # Of another engine's URL, such as a later version may know.
    databases = {"d": structs.replace(made.roots[0].databases["d"], url=url)}
    made = structs.replace(made, roots=(structs.replace(made.roots[0], databases=databases),))
    assert effective(made)["roots"][0]["databases"]["d"]["url"] == shown
    assert "secret" not in dump(made)
    assert yaml.safe_load(dump(made, mask=False))["roots"][0]["databases"]["d"]["url"] == url
