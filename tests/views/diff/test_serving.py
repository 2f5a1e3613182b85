"""Two runs of an inference engine are compared by phase and per token, whatever the mix of their iterations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.diffs import compare
from tests.support.serving import Workload, serve
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.payload import DiffPayload

LOAD = Workload(prefill_first=True, budget=8192, requests=120)
FIXED, PER_PROMPT_TOKEN, PER_REQUEST, PER_KV_TOKEN = LOAD.law


def diff(candidate: Workload, base: Workload = LOAD) -> DiffPayload:
    return compare(serve(base)[0], serve(candidate)[0])


def test_dearer_prompt_tokens_are_slower_prefills_and_leave_decodes_as_they_are() -> None:
    law = (FIXED, 2 * PER_PROMPT_TOKEN, PER_REQUEST, PER_KV_TOKEN)
    answer = diff(replace(LOAD, law=law))
    prefill, decode = answer.serving
    assert (prefill.phase, decode.phase) == ("prefill", "decode")
    assert prefill.per_token.verdict == "slower"
    assert plain(answer.headline).rpartition(". ")[2].startswith("A prompt token is ")
    assert decode.per_token.verdict == "cannot_tell"
    assert plain(answer.headline).startswith("Inconclusive per decoded token: ")


def test_twice_the_requests_are_longer_iterations_but_cheaper_tokens() -> None:
    one = Workload(requests=8, every=0.001, prompts=(512, 512), outputs=(60, 60), budget=16384)
    answer = diff(replace(one, requests=16), one)
    decode = next(each for each in answer.serving if each.phase == "decode")
    assert decode.tokens == (8.0, 16.0)
    assert decode.iteration.verdict == "slower" and decode.per_token.verdict == "faster"
    before, now = (each or 0 for each in (decode.per_token.base_ns, decode.per_token.candidate_ns))
    assert plain(answer.headline).startswith("A decoded token is ") and now < 0.75 * before
    iteration = decode.iteration
    assert before == pytest.approx((iteration.base_ns or 0) / 8)  # all time over all tokens
    assert "An average iteration took " in plain(answer.explanation[0])


def test_without_counts_phases_are_compared_per_iteration_alone() -> None:
    answer = diff(Workload(form="none", seed=2), Workload(form="none"))
    assert answer.serving and all(each.per_token.base_ns is None for each in answer.serving)
    assert "token" not in plain(answer.headline)


def test_a_phase_of_one_side_has_no_change() -> None:
    answer = diff(Workload(), replace(LOAD, requests=40))
    by_phase = {each.phase: each for each in answer.serving}
    assert by_phase["mixed"].iterations[0] == 0 and by_phase["mixed"].iteration.verdict == "unknown"
