"""Random configurations: right ones made from the table of keys, and wild ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fileipc.config import kinds, texts
from fileipc.config.keys import ROOT, TOP, VERSION
from fileipc.config.sections import Layer, MapOf, Section
from fileipc.config.settings import BUILT_IN
from fileipc.config.units import format_duration, format_size

WORDS = {
    "a type's name: lower-case letters, digits, _ and -, at most 200": st.sampled_from(BUILT_IN),
    "an environment variable's name, without its value": st.sampled_from(["PATH", "_x", "A1"]),
    "a pattern relative to the project, without ..": st.sampled_from(["*.sh", "a/..b", "é/*"]),
    "module:function": st.sampled_from(["a:b", "a.b.c:d_1"]),
    "a name of at most 64 characters without /": st.text(
        st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="/"),
        min_size=1,
        max_size=64,
    ),
    "letters, digits, ., _ and -": st.sampled_from(["default", "a.b", "1"]),
    "text": st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=8),
}


def right(kind: Any) -> st.SearchStrategy[Any]:
    """Values that a kind takes."""
    match kind:
        case kinds.Flag():
            return st.booleans()
        case kinds.Version():
            return st.just(VERSION)
        case kinds.Integer():
            return st.integers(kind.low, kind.high)
        case kinds.Duration():
            number = st.floats(kind.low, kind.high) | st.integers(int(kind.low) + 1, int(kind.high))
            return number | number.map(format_duration)
        case kinds.Size():
            size = st.integers(kind.low, kind.high)
            return size | size.map(format_size)
        case kinds.Choice():
            return st.sampled_from(kind.words)
        case texts.Text():
            return WORDS[kind.expected]
        case texts.Path():
            return st.sampled_from(["a", "b/.ipc", "~/c", "/d/e", "../f", "ü x"])
        case texts.Url():
            return st.sampled_from(["sqlite:///a.db", "sqlite:////d/e.db", "sqlite:///u:p@h/d"])
        case texts.Account():
            return st.sampled_from(["0", "12345"])
        case kinds.ListOf():
            return st.lists(right(kind.item), min_size=kind.minimum, max_size=3)
        case kinds.OrNull():
            return st.none() | right(kind.kind)
        case Layer():
            return right(kind.section)
        case MapOf():
            names = st.sampled_from(["render", "summarize", "a-1"])
            return st.dictionaries(names, right(kind.section), max_size=2)
        case Section():
            return _section(kind)
    raise AssertionError(kind)


@st.composite
def _section(draw: st.DrawFn, section: Section) -> dict[str, Any]:
    chosen = draw(st.sampled_from(section.one_of)) if section.one_of else None
    made: dict[str, Any] = {}
    for key in section.keys:
        wanted = key.name == chosen if key.name in section.one_of else draw(st.booleans())
        if wanted or key.required:
            made[key.name] = draw(right(key.kind))
    for name, (other, _) in section.belongs_to.items():
        if other not in made:
            made.pop(name, None)
    return made


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Whole files that load: roots at places, and with names, of their own."""
    document = draw(right(TOP))
    roots = draw(st.lists(right(ROOT), min_size=1, max_size=3))
    for number, root in enumerate(roots):
        root["path"] = f"folder{number}/.ipc"
        root["name"] = f"{number}{root.get('name', '')[:60]}"
        root.pop("project", None)
    if document.get("log", {}).get("file"):
        document["log"]["file"] = "daemon.log"  # its folder must be there
    return {**document, "roots": roots}


_NAMES = st.sampled_from(
    [*(key.name for key in (*TOP.keys, *ROOT.keys)), "<<", "url", "exec", "python", "x", ""]
)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.dates()
    | st.binary(max_size=4)
    | st.sampled_from(["5m", "1MiB", "a/.ipc", "me", "ping", "-1s", "power", ".inf"])
)
wild: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_NAMES, inner, max_size=6)
        | st.dictionaries(st.integers() | st.none() | st.booleans(), inner, max_size=2)
    ),
    max_leaves=25,
)
