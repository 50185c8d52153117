"""recover(): any traces that a crash can leave have one answer, and the promises hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fileipc.protocol.lifecycle import Step, Traces, recover

traces = st.builds(
    Traces,
    command=st.booleans(),
    claimed=st.booleans(),
    final=st.booleans(),
    attempt=st.none() | st.integers(-5, 10),
    idempotent=st.none() | st.booleans(),
)


@given(traces, st.integers(1, 5))
def test_every_combination_has_an_answer(found: Traces, most: int) -> None:
    assert isinstance(recover(found, max_attempts=most).step, Step)


@given(traces, st.integers(1, 5))
def test_nothing_runs_once_a_final_response_exists(found: Traces, most: int) -> None:
    if found.final:
        assert recover(found, max_attempts=most).step is Step.FINISH_SETTLING


@given(traces, st.integers(1, 5))
def test_what_is_not_known_to_be_idempotent_never_runs_a_second_time(
    found: Traces, most: int
) -> None:
    if found.claimed and not found.idempotent:
        assert recover(found, max_attempts=most).step is not Step.RUN


@given(traces, st.integers(1, 5))
def test_attempts_only_rise_and_never_pass_the_limit(found: Traces, most: int) -> None:
    answer = recover(found, max_attempts=most)
    if answer.step is Step.RUN:
        assert 1 <= answer.attempt <= most
        if found.claimed:
            assert answer.attempt > (1 if found.attempt is None else max(found.attempt, 0))


@given(st.integers(1, 6))
def test_a_command_that_kills_the_daemon_is_given_up_after_its_attempts(most: int) -> None:
    runs, attempt = 1, 1
    while True:
        found = Traces(command=True, claimed=True, final=False, attempt=attempt, idempotent=True)
        answer = recover(found, max_attempts=most)
        if answer.step is Step.SETTLE_CRASHED:
            break
        assert answer.step is Step.RUN
        runs, attempt = runs + 1, answer.attempt
    assert runs == most


def test_a_waiting_command_runs_for_the_first_time() -> None:
    found = Traces(command=True, claimed=False, final=False)
    assert recover(found, max_attempts=3).attempt == 1
