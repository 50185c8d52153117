"""Which types a root answers."""

from __future__ import annotations

from typing import Any

import pytest

from fileipc.config.settings import (
    BUILT_IN,
    DatabaseSettings,
    HandlerSettings,
    Limits,
    RootSettings,
    ScriptSettings,
)
from fileipc.errors import Forbidden, InvalidArgs, UnknownType
from fileipc.executors.port import Isolation
from fileipc.handlers.exec_handler import ExecHandler
from fileipc.handlers.python_handler import PythonHandler
from fileipc.handlers.registry import Registry

from .test_ping_and_cancel import Control


def registry(**settings: Any) -> Registry:
    root = RootSettings(path="/p/.ipc", name="p", project="/p", **settings)
    return Registry.build(root, Control())


SUMMARIZE = {"summarize": HandlerSettings(python="shop.ipc:summarize", timeout=7, idempotent=True)}


def test_without_configuration_the_safe_types_are_answered_and_scripts_are_not() -> None:
    here = registry()
    assert here.names() == BUILT_IN[:-1]
    with pytest.raises(Forbidden, match="allows no scripts"):
        here.resolve("execute_script", {"script": "x"})


def test_scripts_exist_once_the_configuration_allows_some() -> None:
    here = registry(scripts=ScriptSettings(allow=("scripts/*.sh",), timeout=9))
    handler, _ = here.resolve("execute_script", {"script": "x"})
    assert (handler.timeout, handler.idempotent) == (9, False)
    assert handler.isolation is Isolation.SUBPROCESS


def test_a_configured_handler_answers_to_its_name_and_to_custom() -> None:
    here = registry(handlers=SUMMARIZE)
    plain, flat = here.resolve("summarize", {"target": "a", "params": {"depth": 2}})
    custom, same = here.resolve("custom", {"target": "summarize", "depth": 2})
    assert plain is custom
    assert (plain.timeout, plain.idempotent) == (7, True)
    assert flat == {"target": "a", "depth": 2}
    assert same == {"depth": 2}


def test_custom_takes_nested_arguments_as_the_seed_writes_them() -> None:
    here = registry(handlers=SUMMARIZE)
    _, flat = here.resolve("custom", {"target": "summarize", "params": {"file": "a"}})
    assert flat == {"file": "a"}


def test_custom_without_a_name_says_what_is_missing() -> None:
    with pytest.raises(InvalidArgs, match="target"):
        registry().resolve("custom", {})


def test_an_unknown_type_is_told_with_a_near_miss() -> None:
    with pytest.raises(UnknownType, match="did you mean analyze_file"):
        registry().resolve("analyse_file", {})
    with pytest.raises(UnknownType, match="known are: ping"):
        registry().resolve("zzz", {})
    with pytest.raises(UnknownType):
        registry().resolve("custom", {"target": "nobody"})


def test_an_endless_type_does_not_come_back_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fileipc.protocol.hints.get_close_matches", not_to_be_called)
    for type_, args in (("x" * 900_000, {}), ("custom", {"target": "x" * 900_000})):
        with pytest.raises(UnknownType) as caught:
            registry().resolve(type_, args)
        assert len(caught.value.message) < 300


def not_to_be_called(*_args: object, **_named: object) -> Any:
    raise AssertionError("an endless name is compared with nothing")


def test_what_the_configuration_says_of_a_handler_reaches_it() -> None:
    here = registry(
        handlers={
            "one": HandlerSettings(python="a:b", memory=1 << 30),
            "two": HandlerSettings(exec=("x",), memory=1 << 29, env=("A",)),
        },
        limits=Limits(response=5000),
    )
    one, _ = here.resolve("one", {})
    two, _ = here.resolve("two", {})
    assert isinstance(one, PythonHandler)
    assert isinstance(two, ExecHandler)
    assert one.memory == 1 << 30
    assert (two.memory, two.env, two.limit) == (1 << 29, ("A",), 5000)


def test_only_what_is_allowed_is_answered_but_ping_and_cancel_always() -> None:
    here = registry(allow=("summarize",), handlers=SUMMARIZE)
    assert here.names() == ("ping", "cancel", "summarize")
    with pytest.raises(Forbidden, match="allow"):
        here.resolve("analyze_file", {"target": "x"})
    with pytest.raises(Forbidden, match="allow"):
        here.resolve("custom", {"target": "analyze_file"})


def test_limits_of_a_query_are_those_of_the_database_it_names() -> None:
    here = registry(
        databases={
            "default": DatabaseSettings(url="sqlite:///a.db", timeout=3),
            "ledger": DatabaseSettings(url="sqlite:///b.db", timeout=60, write=True),
        }
    )
    plain, _ = here.resolve("run_query", {"query": "SELECT 1"})
    ledger, _ = here.resolve("run_query", {"query": "SELECT 1", "database": "ledger"})
    nested, _ = here.resolve("run_query", {"target": "ledger", "params": {"query": "SELECT 1"}})
    odd, _ = here.resolve("run_query", {"query": "SELECT 1", "database": ["x"]})
    assert (plain.timeout, plain.idempotent) == (3, True)
    assert (ledger.timeout, ledger.idempotent) == (60, False)
    assert (nested.timeout, nested.idempotent) == (60, False)
    assert odd.name == "run_query"


def test_a_query_keeps_its_params() -> None:
    query = {"query": "SELECT :a", "params": {"a": 1}}
    assert registry().resolve("run_query", query)[1] == query


def added(*names: str) -> list[PythonHandler]:
    return [PythonHandler(name=name, target="m:f") for name in names]


def test_added_handlers_are_allowed_and_leave_the_first_registry_as_it_was() -> None:
    here = registry(allow=())
    larger = here.with_handlers(added("one", "two"))
    assert larger.names() == ("ping", "cancel", "one", "two")
    assert here.names() == ("ping", "cancel")


@pytest.mark.parametrize("name", ["ping", "summarize", "custom", "one", ""])
def test_a_taken_name_registers_nothing(name: str) -> None:
    here = registry(handlers=SUMMARIZE)
    before = here.names()
    with pytest.raises(ValueError, match="handler"):
        here.with_handlers(added("one", name))
    assert here.names() == before


def test_a_configured_handler_cannot_take_a_built_in_name() -> None:
    with pytest.raises(ValueError, match="ping"):
        registry(handlers={"ping": HandlerSettings(python="m:f")})
