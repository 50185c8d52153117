"""Is it text, in which encoding, and what is its media type?"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

SAMPLE = 64 * 1024  # bytes looked at
_GUESS = 32 * 1024  # bytes that the encoding is guessed from
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_TYPED_TEXT = (b"%PDF-", b"%!PS", b"{\\rtf")
_COMMON = "cp1252"
_TOLERANCE = 0.2
UNKNOWN = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class TextKind:
    """`encoding` None: text that is not UTF-8, in an encoding not told or not looked for."""

    encoding: str | None


def text_kind(head: bytes, *, whole: bool, guess: bool) -> TextKind | None:
    """Judge the first `SAMPLE` bytes; None: binary.

    Args:
        whole: there is no more than `head`, so that a cut character at its end is an error.
        guess: name the encoding of what is not UTF-8 (slower).
    """
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return TextKind(encoding) if _decodes(head, encoding, whole) else None
    if 0 in head or len(_CONTROL.findall(head)) * 20 > len(head):
        return None
    if head.isascii():
        return TextKind("ascii")
    if _decodes(head, "utf-8", whole):
        return TextKind("utf-8")
    return _guessed(head) if guess else TextKind(None)


def _decodes(head: bytes, encoding: str, whole: bool) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        decoder.decode(head, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _guessed(head: bytes) -> TextKind:
    from charset_normalizer import from_bytes  # late: most files are UTF-8

    matches = from_bytes(head[:_GUESS])
    best = matches.best()
    if best is None:
        return TextKind(None)
    # Among equals the library takes the first by alphabet, cp1250; cp1252 is far more common.
    for match in matches:
        if (
            _COMMON in (match.encoding, *match.could_be_from_charset)
            and match.chaos <= best.chaos + _TOLERANCE
            and match.coherence >= best.coherence
        ):
            return TextKind(_COMMON)
    return TextKind(best.encoding.replace("_", "-"))


def binary_type(head: bytes, name: str) -> str:
    """The media type of a binary file by its first bytes."""
    import puremagic  # late: text needs none of it

    try:
        found = puremagic.magic_string(head, filename=name)
    except (puremagic.PureError, ValueError):
        return UNKNOWN
    # One byte in common is no evidence, and neither is the name's ending alone.
    known = [one for one in found if one.mime_type and len(one.byte_match) > 1]
    if not known:
        return UNKNOWN
    best = max(known, key=lambda one: (one.confidence, len(one.byte_match), one.mime_type))
    return str(best.mime_type)


def typed_text(head: bytes) -> bool:
    """Formats made of text that have a type of their own (PDF, PostScript, RTF)."""
    return head.startswith(_TYPED_TEXT)
