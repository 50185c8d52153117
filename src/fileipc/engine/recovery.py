"""What a start does with the claims that a dead daemon left behind."""

from __future__ import annotations

import time
from contextlib import suppress

from ..errors import Interrupted
from ..protocol.lifecycle import Step
from ..protocol.models import Claim
from ..protocol.names import command_stem, parse_id
from ..spool.store import Spool
from .intake import Envelope, Intake
from .settle import Settler
from .work import Work

_RESPONSE_PEEK = 1024 * 1024


def recover_claims(spool: Spool, intake: Intake, settler: Settler, work: Work) -> int:
    """Finish or judge every claim in the root; returns how many there were.

    Must run while the daemon lock is held and before anything else takes commands. Those that
    may run again are left to the feeder, which finds their files.
    """
    spool.load_days()
    spool.claims.tidy()
    claims = spool.claims.ids()
    for command_id in claims:
        _recover(command_id, spool, intake, settler, work)
    return len(claims)


def _recover(command_id: str, spool: Spool, intake: Intake, settler: Settler, work: Work) -> None:
    claim = spool.claims.read(command_id)
    name = _command_name(command_id, claim)
    final = spool.find_final(command_id)
    if final is not None:
        settler.finish(final, name, None)
        return
    examined = intake.examine(name, time.time())
    if not isinstance(examined, Envelope):
        failure = Interrupted("the daemon that ran it died, and its command file is gone")
        settler.settle_without_command(command_id, claim.type if claim else "", failure)
        return
    if work.judge(command_id, examined.command).step is not Step.RUN:
        work.run(examined)  # finds the claim, comes to the same verdict, settles it
        return
    # Nothing may say `running` with no process behind it.
    with suppress(FileNotFoundError):
        spool.withdraw_response(command_id)


def _command_name(command_id: str, claim: Claim | None) -> str:
    """The name of the command's file; a claim is believed only where it fits its own name."""
    if claim is not None and parse_id(command_stem(claim.file) or "") == command_id:
        return claim.file
    return f"{command_id}.json"
