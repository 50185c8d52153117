"""What is written by hand nowhere: `python -m tests.docs.generate` brings it up to date.

The schemas in `config/`, and in README.md what stands between `<!-- generated: NAME -->` and
`<!-- end -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from fileipc.config.schema import config_schema, reference
from fileipc.errors import ERROR_TABLE
from fileipc.protocol.models import command_schema, response_schema

from .readme import REPOSITORY

README = REPOSITORY / "README.md"
_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def schemas() -> dict[str, str]:
    """File name in `config/` -> text, as `fileipc schema` prints it."""
    made = {"command": command_schema(), "response": response_schema(), "config": config_schema()}
    return {
        f"{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in made.items()
    }


def error_table() -> str:
    rows = ["| code | outcome | meaning |", "| --- | --- | --- |"]
    rows += [
        f"| `{code}` | `{kind.outcome}` | {kind.meaning} |" for code, kind in ERROR_TABLE.items()
    ]
    return "\n".join(rows) + "\n"


def parts() -> dict[str, str]:
    return {"errors": error_table(), "reference": reference()}


def with_parts(text: str, made: Mapping[str, str]) -> str:
    """README's text with its generated parts replaced."""
    return _PART.sub(lambda match: f"{match[1]}\n{made[match[2]]}\n{match[3]}", text)


def main() -> None:
    for name, text in schemas().items():
        (REPOSITORY / "config" / name).write_text(text)
    README.write_text(with_parts(README.read_text(), parts()))


if __name__ == "__main__":
    main()
