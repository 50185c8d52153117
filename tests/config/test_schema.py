from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError
from msgspec import structs

from fileipc.config.keys import DEFAULTS, PROJECT, ROOT, TOP
from fileipc.config.kinds import Kind, ListOf
from fileipc.config.load import load
from fileipc.config.schema import config_schema, reference
from fileipc.config.sections import Layer, MapOf, Section
from fileipc.config.settings import LogSettings, RootSettings, Settings
from fileipc.errors import ConfigError

from .test_load import THE_DESIGN
from .yaml_files import write

EXAMPLE = Path(__file__).parents[2] / "config" / "example.yaml"
VALIDATOR = Draft202012Validator(config_schema())


def sections(section: Section) -> Iterator[Section]:
    yield section
    for key in section.keys:
        kind: Kind = key.kind
        while isinstance(kind, ListOf | Layer | MapOf):
            kind = kind.item if isinstance(kind, ListOf) else kind.section
        if isinstance(kind, Section):
            yield from sections(kind)


def test_the_table_has_a_key_for_each_setting_and_no_other() -> None:
    for section in sections(TOP):
        if section is DEFAULTS:
            continue
        names = {field.name for field in structs.fields(section.struct)}
        extra = {"defaults"} if section is TOP else set()
        outside = {"source"} if section is TOP else set()
        assert {key.name for key in section.keys} == (names - outside) | extra, section.struct
    assert {key.name for key in PROJECT.keys} < {key.name for key in ROOT.keys} | {"version"}


def test_the_schema_is_a_schema_and_plain_json() -> None:
    schema = config_schema()
    Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema


def test_every_default_of_the_schema_fits_it() -> None:
    def walk(schema: Any) -> Iterator[dict[str, Any]]:
        if isinstance(schema, dict):
            if "default" in schema and "description" in schema:
                yield schema
            for below in schema.values():
                yield from walk(below)

    found = list(walk(config_schema()))
    assert len(found) > 30
    for schema in found:
        Draft202012Validator(schema).validate(schema["default"])


def test_the_example_and_the_promised_keys_fit_the_schema() -> None:
    VALIDATOR.validate(yaml.safe_load(THE_DESIGN))
    VALIDATOR.validate(yaml.safe_load(EXAMPLE.read_text()))
    VALIDATOR.validate(yaml.safe_load(switched_on(EXAMPLE.read_text())))


@pytest.mark.parametrize(
    "text",
    [
        "roots: [{path: a, workrs: 4}]",
        "roots: [{path: a, workers: 257}]",
        "roots: [{path: a, ttl: 5mins}]",
        "roots: [{path: a, ttl: true}]",
        "roots: [{name: a}]",
        "roots: []",
        "roots: [{path: a, databases: {d: {}}}]",
        "roots: [{path: a, databases: {d: {url: 'x://', url_env: X}}}]",
        "roots: [{path: a, handlers: {ping: {exec: [a]}}}]",
        "roots: [{path: a, handlers: {x: {mcp: {}}}}]",
        "roots: [{path: a, handlers: {x: {python: 'a:b', env: [A]}}}]",
        "defaults: {path: a}",
        "version: 2",
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValidationError):
        VALIDATOR.validate(yaml.safe_load(text))
    with pytest.raises(ConfigError):
        load(write(tmp_path, text))


def switched_on(text: str) -> str:
    """The example with the settings that start with `#` and no space."""
    return re.sub(r"^( *)#(?=\S)", r"\1", text, flags=re.MULTILINE)


def test_the_example_says_the_defaults() -> None:
    settings = load(str(EXAMPLE))
    root = settings.roots[0]
    assert root == RootSettings(path=root.path, name=root.name, project=root.project)
    assert settings == Settings(roots=(root,), log=LogSettings(), source=str(EXAMPLE))


def test_the_example_has_every_key() -> None:
    text = EXAMPLE.read_text()
    for section in sections(TOP):
        for key in section.keys:
            assert re.search(rf"^[ #-]*{key.name}:", text, re.MULTILINE), key.name


def test_what_is_switched_off_in_the_example_works_when_it_is_switched_on(tmp_path: Path) -> None:
    settings = load(write(tmp_path, switched_on(EXAMPLE.read_text())))
    root = settings.roots[0]
    assert sorted(root.databases) == ["default", "sales"]
    assert sorted(root.handlers) == ["render", "summarize"]
    assert root.scripts.allow == ("scripts/*.sh",)


def test_the_reference_names_every_key_with_its_meaning() -> None:
    text = reference()
    for section in sections(TOP):
        for key in section.keys:
            assert f"| `{key.name}` |" in text
            assert key.about.replace("|", "\\|") in text
