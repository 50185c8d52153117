"""The native dialect: the protocol as it stands in the README."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..protocol import codec
from ..protocol.codec import Decoded
from ..protocol.models import Response


@dataclass(frozen=True, slots=True)
class Dialect:
    """Folder names, and the two translations."""

    name: str
    commands: str
    responses: str
    decode: Callable[[bytes], Decoded]
    encode: Callable[[Response], bytes]


NATIVE = Dialect(
    name="native",
    commands="commands",
    responses="responses",
    decode=codec.decode_command,
    encode=codec.encode,
)
