"""run_query reads what it may, refuses the rest, and answers in strict JSON."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import Any

import pytest

from fileipc.config.settings import DatabaseSettings
from fileipc.errors import (
    CommandFailure,
    Forbidden,
    InvalidArgs,
    NotFound,
    Outcome,
    QueryFailed,
    Timeout,
)
from fileipc.executors.process import ProcessExecutor
from fileipc.handlers.query import QueryHandler
from fileipc.handlers.query_sqlite import MAX_BYTES

from .harness import Place

ENDLESS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 10000) "
    "SELECT count(*) FROM n a, n b, n c, n d",
)


def handler(**settings: Any) -> QueryHandler:
    one = DatabaseSettings(**{"url": "sqlite:///data/app.db", **settings})
    return QueryHandler({"default": one})


READ = handler()
WRITE = handler(write=True)


@pytest.fixture
def shop(place: Place) -> Place:
    (place.folder / "data").mkdir()
    with contextlib.closing(open_shop(place)) as connection:
        connection.executescript(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT);"
            "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three');"
            "CREATE VIEW v AS SELECT name FROM t;"
            "CREATE VIRTUAL TABLE r USING rtree(id, a, b); INSERT INTO r VALUES (1, 2, 3);"
            "CREATE VIRTUAL TABLE f USING fts5(words); INSERT INTO f VALUES ('hello world');"
        )
    return place


def open_shop(place: Place) -> sqlite3.Connection:
    return sqlite3.connect(place.folder / "data/app.db", isolation_level=None)


def stored(place: Place, query: str = "SELECT count(*) FROM t") -> Any:
    with contextlib.closing(open_shop(place)) as connection:
        return connection.execute(query).fetchone()[0]


def query(place: Place, text: str, params: Any = None, **more: Any) -> dict[str, Any]:
    using = more.pop("using", READ)
    args = {"query": text, **({} if params is None else {"params": params}), **more}
    result: dict[str, Any] = place.run(using, args)
    return result


def test_rows_come_with_their_columns(shop: Place) -> None:
    assert query(shop, "SELECT id, name FROM t WHERE id < 3 ORDER BY id;  -- all") == {
        "columns": [{"name": "id", "type": "integer"}, {"name": "name", "type": "text"}],
        "rows": [[1, "one"], [2, "two"]],
        "row_count": 2,
        "truncated": False,
        "truncated_by": None,
    }


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT name FROM v ORDER BY name LIMIT 1", [["one"]]),
        ("SELECT a FROM r", [[2.0]]),
        ("SELECT words FROM f WHERE f MATCH 'hello'", [["hello world"]]),
        ("SELECT value FROM json_each('[1, 2]')", [[1], [2]]),
        ("SELECT name FROM pragma_table_info('t')", [["id"], ["name"]]),
        (
            "PRAGMA table_info(t)",
            [[0, "id", "INTEGER", 0, None, 1], [1, "name", "TEXT", 0, None, 0]],
        ),
        ("PRAGMA user_version", [[0]]),
        ("SELECT upper('a') || 2", [["A2"]]),
        ("VALUES (1), (2)", [[1], [2]]),
        ("EXPLAIN QUERY PLAN SELECT 1", [[1, 0, 0, "SCAN CONSTANT ROW"]]),
    ],
)
def test_everything_that_only_reads_is_allowed(shop: Place, text: str, rows: list[Any]) -> None:
    assert query(shop, text)["rows"] == rows


def test_parameters_may_be_a_list_or_an_object(shop: Place) -> None:
    assert query(shop, "SELECT ?, ?", [1, "a'; --"])["rows"] == [[1, "a'; --"]]
    assert query(shop, "SELECT :a, @b, $c", {"a": 1.5, "b": None, "c": True})["rows"] == [
        [1.5, None, 1]
    ]
    assert query(shop, "SELECT typeof(?), ?", [{"base64": "AP8="}, {"base64": "AP8="}])["rows"] == [
        ["blob", {"base64": "AP8="}]
    ]


@pytest.mark.parametrize(
    ("text", "params", "says"),
    [
        ("SELECT ?, ?", [1], "2"),
        ("SELECT ?", [1, 2], "1"),
        ("SELECT ?", None, "1"),
        ("SELECT :a", {"b": 1}, ":a"),
        ("SELECT ?", {"a": 1}, "name"),
        ("SELECT ?", [[1]], r"params\[0\] is a list"),
        ("SELECT :a", {"a": {"b": 1}}, r"params\.a is an object"),
        ("SELECT ?", [{"base64": "!"}], "not base64"),
        ("SELECT ?", [2**63], "64 bits"),
        ("SELECT ?", "text", "params"),
        ("SELECT 1; DROP TABLE t", None, "one statement"),
        ("-- nothing", None, "no statement"),
        ("", None, "query"),
        ("SELECT 1\0", None, "NUL"),
        ("SELECT '\ud800'", None, "surrogate"),
        ("SELECT ?", ["\ud800"], "surrogate"),
    ],
)
def test_wrong_parameters_and_statements_are_told_clearly(
    shop: Place, text: str, params: Any, says: str
) -> None:
    """E12, E15"""
    with pytest.raises(InvalidArgs, match=says) as caught:
        query(shop, text, params)
    assert caught.value.actual_outcome is Outcome.NOT_STARTED
    assert stored(shop) == 3


@pytest.mark.parametrize(
    "text",
    [
        "WITH x AS (SELECT 1) DELETE FROM t",
        "with x as (select 1) delete from t",
        "/* SELECT */ -- SELECT\n DELETE FROM t",
        "WITH x AS (SELECT 1) DELETE FROM t RETURNING id",
        "INSERT INTO t(name) VALUES ('x') RETURNING id",
        "UPDATE t SET name = 'x'",
        "REPLACE INTO t VALUES (1, 'x')",
        "DROP TABLE t",
        "CREATE TABLE u(a)",
        "CREATE TEMP TABLE u(a)",
        "CREATE TABLE u AS SELECT * FROM t",
        "ALTER TABLE t ADD COLUMN x",
        "CREATE INDEX i ON t(name)",
        "REINDEX",
        "ANALYZE",
        "EXPLAIN DELETE FROM t",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT a",
        "PRAGMA query_only=OFF",
        "PRAGMA journal_mode=WAL",
        "PRAGMA user_version=5",
        "PRAGMA writable_schema=1",
        "PRAGMA wal_checkpoint",
        "PRAGMA optimize",
        "ATTACH '/tmp/other.db' AS other",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "VACUUM INTO 'copy.db'",
        "SELECT load_extension('evil')",
        "INSERT INTO f(f) VALUES ('optimize')",
        "INSERT INTO r VALUES (2, 2, 3)",
        "DELETE FROM sqlite_master",
    ],
)
def test_everything_that_writes_or_leaves_is_refused_with_its_reason(
    shop: Place, text: str
) -> None:
    """E12"""
    before = (shop.folder / "data/app.db").read_bytes()
    with pytest.raises(CommandFailure) as caught:
        query(shop, text)
    assert caught.value.code in ("forbidden", "query_failed")
    if "sqlite_master" not in text:
        assert isinstance(caught.value, Forbidden)
        assert "refused" in caught.value.message
    assert (shop.folder / "data/app.db").read_bytes() == before
    assert not (shop.folder / "copy.db").exists()


def test_the_reason_names_the_action_and_the_table(shop: Place) -> None:
    with pytest.raises(Forbidden, match="DELETE t is refused: the database is read-only here"):
        query(shop, "DELETE FROM t")
    with pytest.raises(Forbidden, match="load_extension is refused: it is never allowed here"):
        query(shop, "SELECT load_extension('x')")


def test_values_that_json_lacks_have_one_rule_each(shop: Place) -> None:
    """E15"""
    result = query(
        shop,
        "SELECT x'00ff', 9e999, -9e999, NULL, cast(x'ff41' AS text), 9007199254740993, 1 AS a,"
        " 2 AS a",
    )
    assert result["rows"] == [
        [{"base64": "AP8="}, "Infinity", "-Infinity", None, "\ufffdA", 9007199254740993, 1, 2]
    ]
    assert [column["name"] for column in result["columns"]][-2:] == ["a", "a"]
    assert [column["type"] for column in result["columns"]] == [
        "blob", "real", "real", "null", "text", "integer", "integer", "integer",
    ]  # fmt: skip
    assert result["lossy"] is True


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1;",
        "SELECT 1;;",
        ";; SELECT 1 ; ; -- done;\n;/* ; */;",
        "/* ; */ SELECT 1 /* never closed ;",
        "SELECT 1 -- x",
    ],
)
def test_empty_statements_around_the_one_do_not_count(shop: Place, query: str) -> None:
    assert shop.run(READ, {"query": query})["rows"] == [[1]]


@pytest.mark.parametrize("text", ["--", ";", "/*", ";; --", "[;", '";', "`;", "'';", "a\n;"])
def test_what_looks_like_an_end_within_a_text_is_text(shop: Place, text: str) -> None:
    quoted = text.replace("'", "''")
    assert shop.run(READ, {"query": f"SELECT '{quoted}';;"})["rows"] == [[text]]
    for before, after in (('"', '"'), ("`", "`"), ("[", "]")):
        if before not in text and after not in text:
            query = f"SELECT x AS {before}{text}{after} FROM (SELECT 1 AS x);;"
            assert shop.run(READ, {"query": query})["columns"][0]["name"] == text


def test_a_trigger_keeps_the_statements_within_it(shop: Place) -> None:
    trigger = "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t WHERE id = 1; END;;"
    shop.run(WRITE, {"query": trigger})
    shop.run(WRITE, {"query": "INSERT INTO t VALUES (9, 'nine');"})
    assert shop.run(READ, {"query": "SELECT min(id) FROM t"})["rows"] == [[2]]


@pytest.mark.parametrize("query", [";", "-- nothing", "/* ; */ ;"])
def test_nothing_but_empty_statements_is_no_statement(shop: Place, query: str) -> None:
    with pytest.raises(InvalidArgs, match="no statement"):
        shop.run(READ, {"query": query})


def test_a_column_of_several_types_is_any(shop: Place) -> None:
    result = query(shop, "VALUES (1, NULL), ('a', 2.5)")
    assert [column["type"] for column in result["columns"]] == ["any", "real"]


def test_rows_beyond_the_limit_are_cut_and_said_to_be(shop: Place) -> None:
    few = handler(max_rows=2)
    assert query(shop, "SELECT * FROM t", using=few)["truncated_by"] == "rows"
    assert query(shop, "SELECT * FROM t LIMIT 2", using=few)["truncated"] is False
    assert query(shop, "SELECT * FROM t", using=few, max_rows=1)["row_count"] == 1
    assert query(shop, "SELECT * FROM t", using=few, max_rows=50)["row_count"] == 2
    assert query(shop, "SELECT * FROM t", max_rows=2)["row_count"] == 2


def test_bytes_beyond_the_limit_are_cut_and_said_to_be(shop: Place) -> None:
    million = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT {} FROM n"
    for value in (
        "hex(zeroblob(500000))",
        "zeroblob(1000000)",
        "replace(hex(zeroblob(200000)), '00', char(1))",
    ):
        result = query(shop, million.format(value))
        assert result["truncated_by"] == "bytes"
        assert 1 <= result["row_count"] < 20
    huge = query(shop, "SELECT hex(zeroblob(5000000))")
    assert (huge["row_count"], huge["truncated_by"]) == (0, "bytes")
    assert MAX_BYTES < 10_000_000


@pytest.mark.parametrize(
    "text",
    [
        "SELECT length(hex(zeroblob(400000000)))",
        "SELECT count(*) FROM (WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT"
        " 100000) SELECT x, randomblob(8000) AS b FROM n ORDER BY b LIMIT -1 OFFSET 5)",
        "SELECT group_concat(hex(zeroblob(1000000))) FROM (VALUES (1),(2),(3),(4),(5),(6),(7),(8)),"
        " (VALUES (1),(2),(3),(4),(5))",
    ],
)
def test_a_query_that_wants_too_much_memory_fails(shop: Place, text: str) -> None:
    """E14"""
    with pytest.raises(QueryFailed, match=r"too big|memory"):
        query(shop, text)
    assert query(shop, "SELECT 1")["rows"] == [[1]]


@pytest.mark.parametrize("text", ENDLESS)
def test_a_query_that_never_yields_a_row_is_killed_at_its_deadline(
    shop: Place, processes: ProcessExecutor, text: str
) -> None:
    """E14"""
    call = READ.prepare({"query": text}, shop.scope)
    with pytest.raises(Timeout):
        processes.run(call, shop.job(1.0))
    call = READ.prepare({"query": "SELECT 1"}, shop.scope)
    assert b"[[1]]" in bytes(processes.run(call, shop.job()))


def test_ten_million_rows_are_cut_without_being_read(shop: Place) -> None:
    """E14"""
    text = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 10000000)"
        " SELECT x FROM n"
    )
    assert query(shop, text)["row_count"] == 1000


def test_a_query_the_engine_does_not_understand_fails_with_its_words(shop: Place) -> None:
    with pytest.raises(QueryFailed, match="no such table: absent"):
        query(shop, "SELECT * FROM absent")
    with pytest.raises(QueryFailed, match="syntax error"):
        query(shop, "SELEC 1")


def test_writing_is_possible_where_the_configuration_says_so(shop: Place) -> None:
    result = query(shop, "INSERT INTO t(name) VALUES (?), (?)", ["a", "b"], using=WRITE)
    assert (result["changes"], result["rows"], result["columns"]) == (2, [], [])
    result = query(shop, "UPDATE t SET name = 'x' RETURNING id", using=WRITE, max_rows=2)
    assert (result["changes"], result["row_count"], result["truncated"]) == (5, 2, True)
    assert stored(shop, "SELECT count(*) FROM t WHERE name = 'x'") == 5
    query(shop, "CREATE TABLE u(a)", using=WRITE)
    assert stored(shop, "SELECT count(*) FROM u") == 0


def test_a_write_that_fails_leaves_nothing_behind(shop: Place) -> None:
    with pytest.raises(QueryFailed, match="UNIQUE") as caught:
        query(shop, "INSERT INTO t VALUES (9, 'x'), (1, 'y')", using=WRITE)
    assert caught.value.actual_outcome is Outcome.FINISHED
    assert stored(shop) == 3


@pytest.mark.parametrize(
    "text",
    [
        "ATTACH '/tmp/other.db' AS other",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT a",
        "PRAGMA writable_schema=1",
        "PRAGMA journal_mode=WAL",
        "VACUUM INTO 'copy.db'",
        "SELECT load_extension('evil')",
    ],
)
def test_even_a_writing_database_does_not_reach_beyond_itself(shop: Place, text: str) -> None:
    with pytest.raises((Forbidden, QueryFailed)):
        query(shop, text, using=WRITE)
    assert not (shop.folder / "copy.db").exists()


def test_a_locked_database_is_waited_for_and_then_reported(shop: Place) -> None:
    with contextlib.closing(open_shop(shop)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for using in (handler(timeout=0.2), handler(timeout=0.2, write=True)):
            with pytest.raises(QueryFailed, match="database is locked") as caught:
                query(shop, "SELECT * FROM t", using=using)
            assert caught.value.actual_outcome is Outcome.NOT_STARTED
        other.execute("ROLLBACK")
    assert query(shop, "SELECT count(*) FROM t")["rows"] == [[3]]


def test_a_database_in_wal_mode_is_read_while_another_writes(shop: Place) -> None:
    with contextlib.closing(open_shop(shop)) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM t")
        assert query(shop, "SELECT count(*) FROM t")["rows"] == [[3]]


def test_an_unknown_database_is_not_found_and_the_known_ones_are_named(shop: Place) -> None:
    with pytest.raises(NotFound, match="configured are: default") as caught:
        query(shop, "SELECT 1", database="sales")
    assert caught.value.details == {"configured": ["default"]}
    with pytest.raises(NotFound, match="configured are: none"):
        query(shop, "SELECT 1", using=QueryHandler({}))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://me:secret@host/db", "postgresql needs an extra"),
        ("duckdb:///x.db", "duckdb needs an extra"),
        ("no url:secret", "not a URL"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite://host/secret.db", "names no file"),
        ("sqlite:///none.db", "no file none.db"),
        ("sqlite:///data/none.db", "no file"),
    ],
)
def test_a_database_that_cannot_be_opened_says_why_without_its_url(
    shop: Place, url: str, says: str
) -> None:
    with pytest.raises(NotFound, match=says) as caught:
        query(shop, "SELECT 1", using=handler(url=url))
    assert "secret" not in caught.value.message


def test_the_url_may_come_from_the_environment(
    shop: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    using = handler(url=None, url_env="SHOP_URL")
    with pytest.raises(NotFound, match="SHOP_URL is not set"):
        query(shop, "SELECT 1", using=using)
    monkeypatch.setenv("SHOP_URL", f"sqlite:///{shop.folder}/data/app.db")
    assert query(shop, "SELECT count(*) FROM t", using=using)["rows"] == [[3]]


def test_odd_file_names_are_names_and_no_options(shop: Place) -> None:
    name = "data/a b#c%20&mode=rwc.db"
    (shop.folder / "data/app.db").rename(shop.folder / name)
    assert query(shop, "SELECT 1", using=handler(url=f"sqlite:///{name}"))["rows"] == [[1]]


def test_a_relative_database_stays_in_the_project_and_an_absolute_one_is_the_daemons_word(
    shop: Place,
) -> None:
    """E11"""
    outside = shop.folder.parent / "other.db"
    (shop.folder / "data/app.db").rename(outside)
    shop.link("data/app.db", str(outside))
    with pytest.raises(Forbidden, match="outside the project"):
        query(shop, "SELECT 1")
    with pytest.raises(Forbidden, match="outside the project"):
        query(shop, "SELECT 1", using=handler(url="sqlite:///../other.db"))
    assert query(shop, "SELECT 1", using=handler(url=f"sqlite:///{outside}"))["rows"] == [[1]]


def test_what_is_no_database_is_told(shop: Place) -> None:
    shop.write("data/app.db", "this is not a database at all" * 100)
    with pytest.raises(QueryFailed, match="not a database"):
        query(shop, "SELECT * FROM t")
    (shop.folder / "data/app.db").unlink()
    os.mkfifo(shop.folder / "data/app.db")
    with pytest.raises(Forbidden, match="not a regular file"):
        query(shop, "SELECT 1")


def test_an_empty_file_is_an_empty_database(shop: Place) -> None:
    shop.write("data/app.db", "")
    assert query(shop, "SELECT 1")["rows"] == [[1]]
    assert (shop.folder / "data/app.db").stat().st_size == 0


def test_a_poisoned_schema_harms_nobody(shop: Place) -> None:
    with contextlib.closing(open_shop(shop)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE t(((' WHERE name = 't'")
        connection.execute(
            "INSERT INTO sqlite_master VALUES ('table', 'x\"y', 'x\"y', 0,"
            ' \'CREATE VIRTUAL TABLE "x""y" USING nothing\')'
        )
    with pytest.raises(QueryFailed):
        query(shop, "SELECT * FROM t")


@pytest.mark.parametrize(
    "args",
    [{}, {"query": 5}, {"query": "SELECT 1", "max_rows": 0}, {"query": "SELECT 1", "limit": 1}],
)
def test_arguments_of_another_shape_are_invalid(shop: Place, args: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgs):
        shop.run(READ, args)
