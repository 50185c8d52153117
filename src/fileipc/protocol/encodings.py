"""Text in whatever encoding an editor writes: UTF-8 with or without BOM, UTF-16 and UTF-32."""

from __future__ import annotations

import codecs

from ..errors import FileipcError, InvalidCommand

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Incomplete(FileipcError):
    """The text ends too early: a writer may still be at work."""


def as_text(raw: bytes) -> str:
    """The text of these bytes, without its byte order mark.

    Raises:
        Incomplete: they end within a character or the mark.
        InvalidCommand: they are not text; names the place.
    """
    for bom, encoding in _BOMS:
        if len(raw) < len(bom) and raw and bom.startswith(raw):
            raise Incomplete("the text ends within its byte order mark")
        if raw.startswith(bom):
            return _decoded(raw[len(bom) :], encoding)
    if raw[:4].count(0) == 2 and len(raw) % 2 == 0 and raw[:1] != raw[1:2]:
        return _decoded(raw, "utf-16-le" if raw[1] == 0 else "utf-16-be")
    return _decoded(raw, "utf-8")


def is_plain(raw: bytes) -> bool:
    """Whether these bytes can only be UTF-8 without a byte order mark, if they are text at all."""
    return not raw.startswith(tuple(bom for bom, _ in _BOMS)) and 0 not in raw[:4]


def _decoded(raw: bytes, encoding: str) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        if error.end >= len(raw) and "unexpected end" in error.reason:
            raise Incomplete(f"the text ends within a character ({encoding})") from None
        if "truncated" in error.reason:
            raise Incomplete(f"the text ends within a character ({encoding})") from None
        raise InvalidCommand(
            f"not {encoding.upper()} text: byte 0x{raw[error.start]:02x} at offset {error.start}; "
            "write commands as UTF-8",
            details={"offset": error.start, "encoding": encoding},
        ) from None
