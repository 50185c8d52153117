"""One entry for every benchmark; each figure is a ratio measured within one run."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence

import latency


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("name", choices=["latency"], help="what to measure")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved repetitions")
    parser.add_argument("--pings", type=int, default=300, help="round trips in each repetition")
    parser.add_argument("--waiting", type=int, default=3000, help="waiting commands to drain")
    parser.add_argument("--folder", help="where to work; default: the system's temporary folder")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(argv)
    figures = latency.measure(options.rounds, options.pings, options.waiting, options.folder)
    if options.json:
        print(json.dumps({"machine": machine(), "figures": figures}, indent=2))
        return 0
    print(f"machine: {machine()}")
    for name, value in figures.items():
        print(f"{name:<58} {value:>12,.3f}")
    return 0


def machine() -> str:
    return f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, Python " + (
        platform.python_version()
    )


if __name__ == "__main__":
    sys.exit(main())
