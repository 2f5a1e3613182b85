"""Sides are compared per step only where a step does the same work, and over typical steps only."""

from __future__ import annotations

from tests.support.diffs import compare, noise
from tests.support.recordings import Op, record
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.payload import DiffPayload


def training(batch: int, width: int, us: float, seed: int, tokens: int = 1) -> Trace:
    """Draw six steps: two layers forward and backward over `batch` samples, products of `us` each, and weights."""
    rows = batch * tokens
    ops = []
    for layer in range(2):
        forward = {"Input Dims": [[rows, width], [width, width]]}
        weights = {"Input Dims": [[width, rows], [rows, width]]}
        ops += [
            Op("aten::embedding", 5, args={"Input Dims": [[batch, tokens], [width]]}),
            Op(f"aten::layer{layer}", 5, [Op("aten::t", 2, args={"Input Dims": [[width, width]]})]),
            Op(f"aten::forward{layer}", 5, [Op("aten::mm", 5, kernel=us, args=forward)]),
            Op(f"aten::inputs{layer}", 5, [Op("aten::mm", 5, kernel=us, args=forward)]),
            Op(f"aten::weights{layer}", 5, [Op("aten::mm", 5, kernel=us, args=weights)]),
        ]
    return record(ops, 6, noise(seed))


def headline(answer: DiffPayload) -> str:
    return plain(answer.headline)


def test_twice_the_batch_in_twice_the_time_is_no_change_per_sample() -> None:
    answer = compare(training(32, 512, 1000, 1), training(64, 512, 2000, 2))
    assert answer.samples == (32, 64) and answer.per_sample is not None
    assert headline(answer).startswith("No change in time per sample: 189 µs before, 18")
    assert headline(answer).endswith("Steps aren't comparable: 32 samples in the base, 64 in the candidate.")
    assert answer.step.verdict == "slower"  # per step, as the tables stay


def test_a_slower_kernel_is_slower_per_sample() -> None:
    answer = compare(training(32, 512, 1000, 1), training(64, 512, 3000, 2))
    assert headline(answer).startswith(
        "Per sample, the step is 92.8 µs (49.2%) slower: 189 µs before, 281 µs now."
    )


def test_other_weights_are_another_model_and_no_other_batch() -> None:
    answer = compare(training(32, 512, 1000, 1), training(32, 1024, 2000, 2))
    assert answer.samples is None and answer.per_sample is None
    assert headline(answer).startswith("The step is ") and "slower" in headline(answer)


def test_equal_batches_are_compared_per_step() -> None:
    answer = compare(training(32, 512, 1000, 1), training(32, 512, 1100, 2))
    assert answer.samples is None and headline(answer).startswith("The step is ")


def steps(*factors: float) -> Trace:
    """Draw steps of about 1 ms; the factors make some longer, in an operator of their own."""
    work = [Op("aten::layer", 400, [Op("aten::mm", 30, kernel=500)])]
    small = noise(3)
    return record(
        [*work, Op("save_checkpoint", 1, category="user_annotation")],
        len(factors),
        lambda step: factors[step] * small(step),
    )


def test_one_outlier_is_set_aside_and_named() -> None:
    typical = steps(1, 1, 1, 1, 1, 1)
    for late in (steps(1, 1, 30, 1, 1, 1), steps(1, 1, 1, 1, 1, 30)):
        answer = compare(typical, late)
        assert answer.step.verdict == "unchanged", headline(answer)
        (odd,) = answer.candidate.odd_steps
        assert odd.extra_ns > 20e6 and len(answer.candidate.steps) == 5
        assert any(
            f"Step {odd.step} of the candidate is left out: it takes" in note for note in map(plain, answer.notes)
        )


def test_a_change_of_all_steps_but_one_is_a_change() -> None:
    answer = compare(steps(1, 1, 1, 1, 1, 1), steps(1.3, 1.3, 1, 1.3, 1.3, 1.3))
    assert answer.step.verdict == "slower"
