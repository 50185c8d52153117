from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from fileipc.config import document
from fileipc.config.load import load
from fileipc.config.schema import config_schema
from fileipc.config.settings import Settings
from fileipc.errors import ConfigError

from .shapes import documents, wild

quiet = settings(database=None, deadline=None, max_examples=150)
VALIDATOR = Draft202012Validator(config_schema())


@pytest.fixture(scope="module", autouse=True, params=["default", "python"])
def loader(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr(document, "LOADER", yaml.SafeLoader)
        yield


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("fuzz") / "config.yaml")


def outcome(file: str, raw: bytes) -> Settings | None:
    """The settings; None where the file was refused with problems that can be printed."""
    with open(file, "wb") as stream:
        stream.write(raw)
    try:
        return load(file)
    except ConfigError as error:
        told = error
    assert told.problems
    assert all(p.message and (p.line is None or p.line > 0) for p in told.problems)
    str(told).encode()
    return None


@quiet
@given(raw=st.binary(max_size=200))
def test_any_bytes_are_settings_or_a_configuration_error(scratch: str, raw: bytes) -> None:
    outcome(scratch, raw)


@quiet
@given(text=st.text(max_size=100) | st.text("\t \n-:[]{}&*!|>'\"%#,?<a1~", max_size=60))
def test_any_text_is_settings_or_a_configuration_error(scratch: str, text: str) -> None:
    outcome(scratch, text.encode("utf-8", "surrogatepass"))


@quiet
@given(top=wild, root=wild, defaults=wild)
def test_any_structure_is_settings_or_a_configuration_error(
    scratch: str, top: Any, root: Any, defaults: Any
) -> None:
    outcome(scratch, yaml.safe_dump(top, allow_unicode=True).encode("utf-8", "surrogatepass"))
    nested = {"roots": [root, {"path": "a"}], "defaults": defaults}
    made = outcome(scratch, yaml.safe_dump(nested).encode("utf-8", "surrogatepass"))
    if made is not None:
        VALIDATOR.validate(nested)


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A right file with one value of one root replaced by a wild one."""
    made = draw(documents())
    root = made["roots"][0]
    key = draw(st.sampled_from(sorted(root)))
    root[key] = draw(wild)
    return made


@quiet
@given(made=broken())
def test_what_loads_fits_the_schema(scratch: str, made: dict[str, Any]) -> None:
    loaded = outcome(scratch, yaml.safe_dump(made, allow_unicode=True).encode())
    if loaded is not None:
        VALIDATOR.validate(made)
