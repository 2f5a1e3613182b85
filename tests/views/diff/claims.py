"""Each sentence of Diff on what changed, by how much and why: where it holds, and where it doesn't."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import sin

import pytest
from msgspec.structs import replace

from tests.model.test_steps import draw_launches
from tests.support.claims import Claim, ReadSentences, repeat
from tests.support.diffs import compare, noise
from tests.support.random_jobs.surfaces import found_texts
from tests.support.recordings import Op, record, write_recording
from tests.support.traces import draw, read_bytes
from tests.views.diff.test_comparable import training
from tests.views.diff.test_work import mm, side
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.views.diff.build import build
from torch_tb_profiler.views.diff.gate import Budget, run_checks
from torch_tb_profiler.views.diff.payload import DiffParams

Drawn = Callable[[], Trace]
"""Records one side."""

WORK = [Op("aten::layer", 400, [Op("aten::mm", 30, kernel=500)])]


def steps(
    factor: float = 1.0, seed: int = 1, count: int = 10, scatter: float = 0.002, work: list[Op] = WORK
) -> Drawn:
    """Record steps, all of them so many times as long; `scatter`: of each, relative."""
    small = noise(seed, scatter, 0.001)
    return lambda: record(work, count, lambda step: factor * small(step))


def of(base: Drawn, candidate: Drawn) -> ReadSentences:
    return lambda: " ".join(sentence for _, sentence in found_texts(compare(base(), candidate()), ""))


def uneven(*factors: float, seed: int = 1, **metadata: object) -> Drawn:
    """Record steps, each so many times as long as usual."""
    small = noise(seed, 0.002, 0.001)
    return lambda: read_bytes(
        write_recording(WORK, len(factors), lambda step: factors[step] * small(step), **metadata)
    )


ALIKE = uneven(*[1.0] * 6, seed=2)
DRIFTING = [1 + 0.05 * sin(step / 4) for step in range(40)]


def of_card(name: str, seed: int) -> Drawn:
    return uneven(*[1.0] * 6, seed=seed, deviceProperties=[{"id": 0, "name": name}])


def of_rank(rank: int, seed: int) -> Drawn:
    return uneven(*[1.0] * 6, seed=seed, distributedInfo={"rank": rank, "world_size": 4})


def recorded_twice(base: Sequence[Drawn], candidate: Sequence[Drawn]) -> ReadSentences:
    """Read the sentences about several recordings of each side."""

    def say() -> str:
        sides = TracePair([each() for each in base], [each() for each in candidate])
        return " ".join(sentence for _, sentence in found_texts(build(sides, DiffParams()), ""))

    return say


def with_calls(recorded: bool) -> Drawn:
    """Record an operator beside a kernel, and the call that launches it or not."""
    lines = ["gpu0 kernel gemm 30 600 correlation=1 stream=7", "host cpu_op aten::add 20 600"]
    lines += ["host cuda_runtime cudaLaunchKernel 10 5 correlation=1"] * recorded
    return lambda: repeat(*lines, length=1000)


def of_batch(size: int) -> Drawn:
    sizes = f"Input~Dims=[[{size},8],[8,8]]".replace("~", " ")
    return lambda: draw(f"host cpu_op aten::mm 10 40 {sizes}")


def launching(*kernels: int) -> Drawn:
    """Record steps that launch 20 kernels each, of which so many are recorded."""
    return lambda: draw_launches(*((20, count) for count in kernels))


def changed(factor: float, scatter: float = 0.002, count: int = 10) -> ReadSentences:
    """Read the sentences about steps that take so many times as long."""
    return of(steps(scatter=scatter, count=count), steps(factor, 2, count, scatter))


def loaded(us: float, kernel: float = 500) -> Drawn:
    """Record steps of which loading takes so many us."""
    loading = Op("enumerate(DataLoader)#_It.__next__", us, category="user_annotation")
    return steps(work=[loading, Op("aten::layer", 400, [Op("aten::mm", 30, kernel=kernel)])], seed=int(us))


def products(time: float = 90, n: int = 300, seed: int = 2, scatter: float = 0.002) -> ReadSentences:
    """Read the sentences about products that take so many us each now, with so many columns."""
    return of(partial(side, 1, mm(), scatter=scatter), partial(side, seed, mm(time, n), scatter=scatter))


def refused(explained: bool) -> ReadSentences:
    """Return how a budget of memory is refused where none was recorded; `explained`: the reason is known."""

    def say() -> str:
        diff = compare(steps()(), steps()())
        with pytest.raises(TraceError) as error:
            run_checks(diff if explained else replace(diff, reasons={}), None, Budget(peak_memory=1))
        return str(error.value)

    return say


CLAIMS = [
    Claim(
        "The {noun} is {change}: {times}.",
        r"The step is \S+ µs \((?:19|20|21)[\d.]*%\) slower: ",
        changed(1.2),
        "it takes a fifth less",
        changed(0.8),
    ),
    Claim(
        "No change in {noun} time: {times}. Any difference is under {min_effect} ({interval}).",
        r"No change in step time: .* Any difference is under 2% ",
        changed(1.0),
        "it takes 5% longer",
        changed(1.05),
    ),
    Claim(
        "{noun} time is the same on both sides: {now}.",
        "Step time is the same on both sides: ",
        of(steps(), steps()),
        "it takes 5% longer",
        changed(1.05),
    ),
    Claim(
        "Inconclusive: {times} ({share}, {interval}).",
        r"Inconclusive: .* before, .* now \(",
        changed(1.05, scatter=0.2, count=4),
        "steps vary by a hundredth of that",
        changed(1.05),
    ),
    Claim(
        "The {noun} is {change}: {times} ({interval}).",
        r"The step is .* slower: .* before, .* now \(95% interval \+",
        changed(1.02, scatter=0.005),
        "it is longer by far more than 2%",
        changed(1.2, scatter=0.005),
    ),
    Claim(
        "Whether the change exceeds the {min_effect} that matters is unclear: {needed}",
        "Whether the change exceeds the 2% that matters is unclear: about ",
        changed(1.02, scatter=0.005),
        "it is longer by far more than 2%",
        changed(1.2, scatter=0.005),
    ),
    Claim(
        "Inconclusive: {times} ({share}).",
        r"Inconclusive: \S+ \S+ before, \S+ \S+ now \(\+",
        of(steps(count=1), steps(1.2, 2, 1)),
        "both sides have ten steps",
        changed(1.2),
    ),
    Claim(
        "At least one side has a single {noun}, so there's no significance test.",
        "At least one side has a single step",
        of(steps(count=1), steps(1.2, 2, 1)),
        "both sides have ten",
        changed(1.2),
    ),
    Claim(
        "Per sample, the {noun} is {change}: {times}.",
        r"Per sample, the step is .* \(49\.\d%\) slower",
        of(partial(training, 32, 512, 1000, 1), partial(training, 64, 512, 3000, 2)),
        "twice the samples take twice as long",
        of(partial(training, 32, 512, 1000, 1), partial(training, 64, 512, 2000, 2)),
    ),
    Claim(
        "No change in time per sample: {times}.",
        "No change in time per sample: ",
        of(partial(training, 32, 512, 1000, 1), partial(training, 64, 512, 2000, 2)),
        "they take three times as long",
        of(partial(training, 32, 512, 1000, 1), partial(training, 64, 512, 3000, 2)),
    ),
    Claim(
        "{noun}s aren't comparable: {base} samples in the base, {candidate} in the candidate.",
        "Steps aren't comparable: 32 samples in the base, 64 in the candidate.",
        of(partial(training, 32, 512, 1000, 1), partial(training, 64, 512, 2000, 2)),
        "both have as many",
        of(partial(training, 32, 512, 1000, 1), partial(training, 32, 512, 2000, 2)),
    ),
    Claim(
        "Nearly all of the change{per_step} comes from {bar}{doubt}.",
        r"Nearly all of the change comes from data loading \(\+(?:29\d|30\d)",
        of(loaded(200), loaded(500)),
        "kernels take that much longer",
        of(loaded(200), loaded(200, kernel=800)),
    ),
    Claim(
        "Nearly all of the change{per_step} comes from {bar}{doubt}.",
        r"Nearly all of the change per step comes from kernels \(\+(?:5\.9|6\.0)\d ms\)",
        of(partial(training, 32, 512, 1000, 1), partial(training, 64, 512, 2000, 2)),
        "both compute as many samples, so that a change is one per step",
        of(partial(training, 32, 512, 1000, 1), partial(training, 32, 512, 2000, 2)),
    ),
    Claim(
        "{name} ({delta})",
        r"data loading \(\+(?:29\d|30\d) µs\)",
        of(loaded(200), loaded(500)),
        "loading takes as long",
        of(loaded(200), loaded(201, kernel=800)),
    ),
    Claim(
        "More than the entire change{per_step} comes from {bar}{doubt}; other categories offset part of it.",
        "More than the entire change comes from data loading",
        of(loaded(200), loaded(800, kernel=300)),
        "no category becomes shorter",
        of(loaded(200), loaded(800)),
    ),
    Claim(
        "The largest part of the change{per_step}, {share}, comes from {bar}{doubt}.",
        r"The largest part of the change, (?:59|60|61)[\d.]*%, comes from kernels",
        of(loaded(200), loaded(400, kernel=800)),
        "all of it does",
        of(loaded(200), loaded(201, kernel=800)),
    ),
    Claim(
        "Also significant: {bars}.",
        r"Also significant: .*data loading \(\+(?:19\d|20\d)",
        of(loaded(200), loaded(400, kernel=800)),
        "loading takes as long",
        of(loaded(200), loaded(201, kernel=800)),
    ),
    Claim(
        "Operators that changed most: {names}{more}.",
        r"Operators that changed most: aten::mm \(\+",
        of(loaded(200), loaded(201, kernel=800)),
        "loading alone changed",
        of(loaded(200), loaded(500)),
    ),
    Claim(
        "{name} ({delta}{status})",
        r"aten::mm \(.9[345]\d µs on the host, \+9[3456]\d µs on the device\)",
        of(steps(work=[Op("aten::mm", 980, kernel=1)]), steps(seed=2, work=[Op("aten::mm", 30, kernel=950)])),
        "it takes as long on the host as before, so nothing moved",
        of(steps(work=[Op("aten::mm", 30, kernel=1)]), steps(seed=2, work=[Op("aten::mm", 30, kernel=950)])),
    ),
    Claim(
        "{name} ({delta}{status})",
        r"aten::mm \(\+(?:29\d|30\d) µs\)",
        of(loaded(200), loaded(201, kernel=800)),
        "it takes as long",
        of(loaded(200), loaded(500)),
    ),
    Claim(
        "{operators} take {change} {direction} for the same FLOPs: {old} TFLOP/s before, {new} now.",
        r"Matrix operators take 29\.\d% longer for the same FLOPs: 0\.133 TFLOP/s before, 0\.103 now\.",
        products(117),
        "they compute more",
        products(117, 390),
    ),
    Claim(
        "{operators} compute {change} {direction} FLOPs, at {speed} TFLOP/s{before}.",
        r"Matrix operators compute 30% more FLOPs, at 0\.133 TFLOP/s\.",
        products(117, 390),
        "they compute the same, more slowly",
        products(117),
    ),
    Claim(
        "{operators} compute the same FLOPs as fast as before, at {speed} TFLOP/s.",
        "compute the same FLOPs as fast as before",
        products(),
        "they take a third longer",
        products(117),
    ),
    Claim(
        "Same FLOPs in {operators}; too few {noun}s to compare their speed ({old} TFLOP/s before, {new} now).",
        "Same FLOPs in matrix operators; too few steps to compare their speed",
        products(scatter=0.2),
        "their times vary by a hundredth of that",
        products(),
    ),
    Claim(
        "About {} {} per side would settle it.",
        r"\. About [\d,]+ steps per side would settle it\.",
        changed(1.05, scatter=0.2, count=4),
        "it is settled",
        changed(1.05),
    ),
    # ---- notes
    Claim(
        "{} in the base, {} in the candidate. All numbers are per {}.",
        r"8 steps in the base, 10 in the candidate\. All numbers are per step\.",
        of(steps(count=8), steps(seed=2)),
        "both have ten",
        of(steps(), steps(seed=2)),
    ),
    Claim(
        "The first {} of the {} ({}) is left out, as it may be warm-up: a typical one takes {}.",
        r"The first step of the base \(2\.1\d ms\) is left out, as it may be warm-up: a typical one takes 72\d µs",
        of(uneven(3, 1, 1, 1, 1, 1), ALIKE),
        "it takes as long as the others",
        of(uneven(1, 1, 1, 1, 1, 1), ALIKE),
    ),
    Claim(
        "{} in the {} {} outside the compared {}s.",
        r"2 operator calls in the base are outside the compared steps\.",
        of(uneven(3, 1, 1, 1, 1, 1), ALIKE),
        "all steps are compared, and no operator runs beside them",
        of(uneven(1, 1, 1, 1, 1, 1), ALIKE),
    ),
    Claim(
        "{} {} of the {} is left out: it takes {} {} than a typical {}{}.",
        r"Step 5 of the base is left out: it takes 2\.8\d ms more than a typical step\.",
        of(uneven(*[1.0] * 5, 5, *[1.0] * 6), ALIKE),
        "it takes a tenth more, as steps may",
        of(uneven(*[1.0] * 5, 1.1, *[1.0] * 6), ALIKE),
    ),
    Claim(
        "{}s as long as some that are left out of the {} are typical of the {}, and count there.",
        r"Steps as long as some that are left out of the base are typical of the candidate, and count there\.",
        of(uneven(*[1.0] * 5, 5, *[1.0] * 6), uneven(*[1.0, 5.0] * 6, seed=2)),
        "no step of the candidate takes nearly as long",
        of(uneven(*[1.0] * 5, 5, *[1.0] * 6), uneven(*[1.0, 3.0] * 6, seed=2)),
    ),
    Claim(
        "{} of the {} {} left out as well.",
        r"2 more steps of the base are left out as well\.",
        of(uneven(*[1.0, 1.0, 1.0, 1.0, 5.0] * 5), ALIKE),
        "three are left out, which are named",
        of(uneven(*[1.0, 1.0, 1.0, 1.0, 5.0] * 3), ALIKE),
    ),
    Claim(
        "No steps in the {} trace, so it counts as one. Call `prof.step()` once per iteration.",
        r"No steps in the base trace, so it counts as one\.",
        of(of_batch(4), ALIKE),
        "it has steps",
        of(steps(), ALIKE),
    ),
    Claim(
        "{} of the {} {} left out: device work is missing.",
        r"1 step of the base is left out: device work is missing\.",
        of(launching(20, 20, 5), launching(20, 20, 20)),
        "all of it is recorded",
        of(launching(20, 20, 20), launching(20, 20, 20)),
    ),
    Claim(
        "At least one side has fewer than two {}s, so there's no significance test. Record several {}s "
        "(`schedule(active=...)`).",
        "At least one side has fewer than two steps",
        of(steps(count=1), steps(1.2, 2, 1)),
        "both have ten",
        changed(1.2),
    ),
    Claim(
        "Consecutive {}s {} correlated (autocorrelation {}), so they count as fewer {}s and the intervals are "
        "wider.",
        r"Consecutive steps are correlated \(autocorrelation 0\.9\d\)",
        of(uneven(*DRIFTING), uneven(*DRIFTING, seed=2)),
        "the same steps come in another order",
        of(uneven(*DRIFTING[::7], *DRIFTING[3::7]), uneven(*DRIFTING[::7], *DRIFTING[3::7], seed=2)),
    ),
    Claim(
        "One recording per side, so run-to-run noise is unknown. Record each side two or three times.",
        "One recording per side, so run-to-run noise is unknown.",
        changed(1.0),
        "each side has two",
        recorded_twice([steps(), steps(seed=3)], [steps(seed=2), steps(seed=4)]),
    ),
    Claim(
        "Different hardware: {} in the base, {} in the candidate.",
        r"Different hardware: NVIDIA A100 in the base, NVIDIA H100 in the candidate\.",
        of(of_card("NVIDIA A100", 1), of_card("NVIDIA H100", 2)),
        "both ran on the same model",
        of(of_card("NVIDIA H100", 1), of_card("NVIDIA H100", 2)),
    ),
    Claim(
        "Different hardware: {} in the base, {} in the candidate.",
        "Different hardware: ",
        of(of_card("NVIDIA A100", 1), of_card("NVIDIA H100", 2)),
        "only the calls that tell whose device it is are missing",
        of(with_calls(recorded=True), with_calls(recorded=False)),
    ),
    Claim(
        "Different ranks: {} in the base, {} in the candidate.",
        r"Different ranks: 0 in the base, 3 in the candidate\.",
        of(of_rank(0, 1), of_rank(3, 2)),
        "both are of one rank",
        of(of_rank(3, 1), of_rank(3, 2)),
    ),
    Claim(
        "Host self times include runtime calls, which {} didn't record separately.",
        r"Host self times include runtime calls, which the candidate didn't record separately\.",
        of(with_calls(recorded=True), with_calls(recorded=False)),
        "both did",
        of(with_calls(recorded=True), with_calls(recorded=True)),
    ),
    Claim(
        "The first dimension of the inputs (often the batch size) is {} in the base and {} in the candidate.",
        r"The first dimension of the inputs \(often the batch size\) is 4 in the base and 8 in the candidate\.",
        of(of_batch(4), of_batch(8)),
        "it is the same",
        of(of_batch(4), of_batch(4)),
    ),
    # ---- the gate
    Claim(
        "the trace doesn't record it",
        "can't check the budget of peak memory: the trace doesn't record it",
        refused(explained=False),
        "the comparison knows why",
        refused(explained=True),
    ),
]

_PHASES = "inference engines, whose recordings are simulated: tests/views/diff/test_serving.py"
_DRAWN = "drawn from values, with the neighboring case: tests/views/diff/test_headline.py and test_words.py"

NO_CLAIMS = {
    "Can't compare {noun} times: {sides} no complete {noun}.": "why nothing is said",
    "Can't compare {noun} times: no {noun}s are marked in the {side}, so all of it counts as one.": "why nothing "
    "is said",
    "{before} before, {now} now": "a part of other sentences",
    " and {more}": "a part of another sentence",
    "{before}, {item}": "a part of other sentences",
    "More than {} {} per side would be needed to settle it.": _DRAWN,
    "Significant changes within the {noun}: {bars}.": _DRAWN,
    "In this recording, the {noun} is {change}: {times}.": _DRAWN,
    "Both sides ran the same program: record each several times to rule out noise.": _DRAWN,
    "Inconclusive per sample: {times} ({share}).": "as of a step",
    "Can't compare FLOPs: FLOPs or bytes are known for {old} of device time in the base, {new} in the "
    "candidate.": ("coverage: tests/views/diff/test_work.py"),
    "FLOPs or bytes are known for {old} of device time in the base, {new} in the candidate.": (
        "coverage: tests/views/diff/test_work.py"
    ),
    "Inconclusive per {noun}: {times} ({share}).": _PHASES,
    "No change in time per {noun}: {times}.": _PHASES,
    "A {noun} is {change}: {times}.": _PHASES,
    "An average iteration took {before} before ({old}), {now} now ({new}).": _PHASES,
}
"""Templates that say nothing of who, why, or how much, or whose recordings are drawn elsewhere."""
