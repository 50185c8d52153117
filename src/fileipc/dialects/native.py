"""The native dialect: the protocol as it stands in the README."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..protocol.codec import Decoded
    from ..protocol.models import Response


class Dialect(NamedTuple):
    """Folder names, and the two translations.

    `decode(raw, max_depth)` and `encode(response)` as in `protocol.codec`.
    """

    name: str
    commands: str
    responses: str
    decode: Callable[[bytes, int], Decoded]
    encode: Callable[[Response], bytes]


# The codec is imported with the first command: a client needs the folder names alone, and
# `fileipc send` would pay more for the import than for everything else it does.


def _decode(raw: bytes, max_depth: int) -> Decoded:
    from ..protocol.codec import decode_command

    return decode_command(raw, max_depth)


def _encode(response: Response) -> bytes:
    from ..protocol.codec import encode

    return encode(response)


NATIVE = Dialect(
    name="native", commands="commands", responses="responses", decode=_decode, encode=_encode
)
