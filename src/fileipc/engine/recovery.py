"""What a start does with the claims that a dead daemon left behind."""

from __future__ import annotations

import time

from ..errors import Interrupted
from ..protocol.lifecycle import Step
from ..protocol.models import Claim
from ..protocol.names import command_stem, parse_id
from ..spool.store import Spool
from .claiming import Claiming
from .intake import Envelope, Intake, Refusal, Unfinished
from .settle import Settler
from .steps import Steps
from .work import Work


def recover_claims(
    spool: Spool, intake: Intake, steps: Steps, claiming: Claiming, settler: Settler, work: Work
) -> int:
    """Finish or judge every claim in the root; returns how many there were.

    Must run while the daemon lock is held and before anything else takes commands. Those that
    may run again are left to the feeder, which finds their files.

    Raises:
        OSError: it cannot be done now; doing it again changes nothing that is done.
    """
    spool.load_days()
    spool.claims.tidy()
    claims = spool.claims.ids()
    for command_id in claims:
        _recover(command_id, spool, intake, steps, claiming, settler, work)
    return len(claims)


def _recover(
    command_id: str,
    spool: Spool,
    intake: Intake,
    steps: Steps,
    claiming: Claiming,
    settler: Settler,
    work: Work,
) -> None:
    claim = spool.claims.read(command_id)
    name = _command_name(command_id, claim)
    final = spool.find_final(command_id)
    if final is not None:
        settler.finish(final, name, None, patient=False)
        return
    # Nothing may say `running` with no process behind it.
    steps.do(lambda: spool.withdraw_response(command_id), patient=False)
    examined = intake.examine(name, time.time())
    if isinstance(examined, Unfinished):
        return  # the feeder waits for it, and finds the claim then
    if isinstance(examined, Envelope):
        if claiming.judge(command_id, examined.command).step is not Step.RUN:
            work.run(examined, patient=False)  # finds the claim, comes to the same verdict
        return
    gone = (
        f"its command file cannot be read any more ({examined.failure.message})"
        if isinstance(examined, Refusal)
        else "its command file is gone"
    )
    failure = Interrupted(f"the daemon that ran it died, and {gone}")
    settler.settle_without_command(command_id, claim.type if claim else "", failure)


def _command_name(command_id: str, claim: Claim | None) -> str:
    """The name of the command's file; a claim is believed only where it fits its own name."""
    if claim is not None and parse_id(command_stem(claim.file) or "") == command_id:
        return claim.file
    return f"{command_id}.json"
