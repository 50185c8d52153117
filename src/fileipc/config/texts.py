"""Kinds of text: names and patterns, paths, URLs, users and groups."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from . import owners
from .kinds import Plain, Schema, near
from .nodes import Place, Unfit

_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_PASSWORD = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://[^:/@]*:)(.*)(@)")
_SECRET = re.compile(r"([?&;][^=&;]*(?:pass|pwd|secret|token|key)[^=&;]*=)[^&;]*", re.IGNORECASE)
MASK = "***"


@dataclass(frozen=True, slots=True)
class Text(Plain):
    """Text without control characters that fits `pattern` as a whole.

    `hint` turns what does not fit into what was probably meant.
    """

    expected: str
    pattern: str = ".+"
    hint: Callable[[str], str | None] = lambda _text: None

    def read(self, place: Place) -> str:
        value = place.value()
        if not isinstance(value, str):
            raise Unfit(f"expected {self.expected}, got {place.got()}", place.quoted())
        if _CONTROL.search(value):
            raise Unfit(f"expected {self.expected}, got {place.got()} with a control character")
        if not self.fits(value):
            raise Unfit(f"expected {self.expected}, got {place.got()}", self.meant(value))
        return value

    def fits(self, text: str) -> bool:
        return re.fullmatch(self.pattern, text) is not None

    def meant(self, text: str) -> str | None:
        """What was probably meant by a text that does not fit."""
        guess = self.hint(text)
        return guess if guess is not None and self.fits(guess) else None

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True, slots=True)
class Path(Plain):
    """A path; made absolute from the folder of the file it stands in, `~` expanded."""

    expected: str = "a path"

    def read(self, place: Place) -> str:
        text = Text(self.expected).read(place)
        if re.match(r"\$(\w+|\{)", text):
            raise Unfit(f"variables are not expanded, in {text!r}", "~/... or the whole path")
        if text.startswith("~"):
            text = os.path.expanduser(text)
            if text.startswith("~"):
                raise Unfit(f"no such user: {text.split('/', 1)[0]}")
        return os.path.normpath(os.path.join(os.path.dirname(place.file), text))

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class Url:
    """A database's URL; its password is masked where it is shown."""

    expected: str = "a URL such as sqlite:///data/app.db"
    pattern: str = r"sqlite:///(?!:memory:$)[^?]+"

    def read(self, place: Place) -> str:
        try:
            return Text(self.expected, self.pattern).read(place)
        except Unfit:
            # What was written may hold a password: it stays out of the message.
            raise Unfit(
                f"expected {self.expected}; this version knows sqlite:///PATH (relative to the "
                "project) and sqlite:////PATH (absolute), without options, and no other database"
            ) from None

    def show(self, value: object, *, mask: bool) -> str:
        text = str(value)
        if not mask:
            return text
        return _SECRET.sub(rf"\g<1>{MASK}", _PASSWORD.sub(rf"\g<1>{MASK}\g<3>", text))

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True, slots=True)
class Account(Plain):
    """A user or group that this machine knows."""

    expected: str
    find: Callable[[str], int | None]
    names: Callable[[], list[str]]

    def read(self, place: Place) -> str:
        name = Text(self.expected).read(place)
        if self.find(name) is None:
            raise Unfit(f"expected {self.expected}, got {place.got()}", near(name, self.names()))
        return name

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


USER = Account("a user of this machine, or me", owners.user_id, owners.user_names)
GROUP = Account("a group of this machine", owners.group_id, owners.group_names)
