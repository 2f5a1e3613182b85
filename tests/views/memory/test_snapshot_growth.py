"""What counts as a leak in the history of a snapshot, and the nearest cases that are none."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import pytest

from tests.support.snapshots import entry, frame
from tests.views.memory.test_snapshot_failures import BASE, FORWARD, MIB, STEP, draw_segment
from tests.views.memory.test_snapshot_history import read
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.snapshot.build import build_snapshot
from torch_tb_profiler.views.memory.snapshot.payload import MemorySnapshot, SnapshotParams

BACKWARD = [frame("at::mm", 0, "??"), frame("MmBackward0::apply", 0, "??")]
STACK = [frame("cat", 9, "/x/site-packages/torch/functional.py"), frame("add", 41, "evaluate.py")]
OTHER_STACK = [frame("log", 7, "log.py")]

Born = tuple[int, int | None, int, list[Any]]
"""Step of the allocation, step in which it is freed (None: never), MiB, stack."""


def grown(
    *blocks: Born, steps: int = 6, annotated: bool = False, fails: bool = False, device_free: int = 10
) -> MemorySnapshot:
    """Return the answer for a history in which each step has a forward and a backward pass of 100 MiB."""
    entries: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []

    def add(action: str, block: int, size: int, stack: list[Any]) -> None:
        address = BASE + (block + 1) * 2**32
        entries.append(entry(action, size * MIB, 10 * len(entries), stack, addr=address))

    def free(block: int, size: int, stack: list[Any]) -> None:
        add("free_requested", block, size, stack)
        add("free_completed", block, size, stack)

    for step in range(steps):
        notes.append({"name": f"ProfilerStep#{step}", "stage": "START", "time_us": 10 * len(entries), "device": 0})
        add("alloc", 1000 + step, 100, FORWARD)
        for number, (born, _, size, stack) in enumerate(blocks):
            if born == step:
                add("alloc", number, size, stack)
        add("alloc", 2000 + step, 50, BACKWARD)
        free(1000 + step, 100, FORWARD)
        free(2000 + step, 50, BACKWARD)
        for number, (_, gone, size, stack) in enumerate(blocks):
            if gone == step:
                free(number, size, stack)
        notes.append(
            {"name": f"ProfilerStep#{step}", "stage": "END", "time_us": 10 * len(entries) - 5, "device": 0}
        )
    left = sum(size for _, gone, size, _ in blocks if gone is None or gone >= steps)
    if fails:
        oom = entry("oom", 60 * MIB, 10 * len(entries), FORWARD, device_free=device_free * MIB)
        entries.append(oom)
    segments = [draw_segment([(max(left, 1), STEP), *([] if fails else [(400, None)])])]
    value = {"segments": segments, "device_traces": [entries], "external_annotations": notes if annotated else []}
    return build_snapshot(read(value), SnapshotParams())


def accumulated(passes: int, optimized: Container[int], steps: int = 8, drop: int = 0) -> MemorySnapshot:
    """Return the answer where steps have so many passes and each leaves 50 MiB; no step is annotated.

    optimized  the steps in which the optimizer allocates a temporary tensor
    drop       passes of the first step that the recording doesn't have
    """
    entries: list[dict[str, Any]] = []

    def use(size: int, *stacks: list[Any], keep: bool = False) -> None:
        at = {number: BASE + (len(entries) + number) * 2**32 for number in range(len(stacks))}
        for action in ("alloc", *([] if keep else ["free_requested", "free_completed"])):
            for number, stack in enumerate(stacks):
                entries.append(entry(action, size * MIB, 10 * len(entries), stack, addr=at[number]))

    for step in range(steps):
        for _ in range(passes - (drop if step == 0 else 0)):
            use(50, FORWARD, BACKWARD)
        if step in optimized:
            use(20, STEP)
        use(50, STACK, keep=True)
    value = {"segments": [draw_segment([(50 * steps, STACK), (400, None)])], "device_traces": [entries]}
    return build_snapshot(read(value), SnapshotParams())


def each(*steps: int, life: int | None = None, size: int = 10, stack: list[Any] = STACK) -> list[Born]:
    return [(step, None if life is None else step + life, size, stack) for step in steps]


LEAKS = {
    "a block of every step": each(0, 1, 2, 3, 4, 5),
    "but for the last one": each(0, 1, 2, 3, 4),
    "beside a window": [*each(1, 2, 3, 4, 5), *each(0, 1, 2, 3, 4, 5, life=3, stack=OTHER_STACK)],
    "beside what the same step drops": [*each(1, 2, 3, 4, 5), (2, 3, 9, STACK)],
    "beside what the first step makes and drops": [*each(1, 2, 3, 4, 5), (0, 4, 9, STACK)],
}
NONE = {
    "nothing": [],
    "batches two steps ahead": each(0, 1, 2, 3, 4, 5, life=2),
    "a window over four steps": each(0, 1, 2, 3, 4, 5, life=4),
    "what the first step makes": [(0, None, 10, STACK)] * 5,
    "a cache that is full": each(0, 1, 2),
    "the last two steps": each(4, 5),
    "little": each(0, 1, 2, 3, 4, 5, size=0),
}


@pytest.mark.parametrize("annotated", [False, True])
@pytest.mark.parametrize("blocks", LEAKS.values(), ids=LEAKS)
def test_blocks_of_most_steps_that_are_never_freed_are_a_leak(blocks: list[Born], annotated: bool) -> None:
    growth = grown(*blocks, annotated=annotated).growth
    assert growth is not None and (growth.steps, growth.annotated) == (6, annotated)
    (leak,) = growth.leaks
    count = sum(block[1] is None for block in blocks)
    assert (leak.blocks, leak.bytes) == (count, growth.leaked_bytes) == (count, 10 * count * MIB)
    assert plain(growth.summary) == (
        f"Likely a leak: {count * 10}.0 MiB in {count} blocks from evaluate.py(41): add were allocated "
        f"in {count} of 6 {'steps' if annotated else 'passes'} and never freed."
    )


@pytest.mark.parametrize("annotated", [False, True])
@pytest.mark.parametrize("blocks", NONE.values(), ids=NONE)
def test_nothing_else_is(blocks: list[Born], annotated: bool) -> None:
    growth = grown(*blocks, annotated=annotated).growth
    assert growth is not None and growth.leaks == [] and growth.leaked_bytes == 0
    assert plain(growth.summary) == f"No sign of a leak over 6 {'steps' if annotated else 'passes'}."


@pytest.mark.parametrize(
    ("passes", "optimized", "drop", "expected"),
    [
        (4, range(8), 0, "in 8 of 8 steps"),
        (4, range(8), 2, "in 8 of 8 steps"),
        (1, range(8), 0, "in 8 of 8 steps"),
        (4, (), 0, "in 8 of 32 passes"),
        (4, (0,), 0, "in 8 of 32 passes"),
        (4, range(5), 0, "in 8 of 32 passes"),
        (4, (0, 1, 3, 4, 5, 6, 7), 0, "in 8 of 32 passes"),
    ],
)
def test_passes_are_steps_where_the_optimizer_tells_them_apart(
    passes: int, optimized: Container[int], drop: int, expected: str
) -> None:
    growth = accumulated(passes, optimized, drop=drop).growth
    assert growth is not None and expected in plain(growth.summary) and not growth.annotated


def test_the_layers_of_one_forward_pass_are_no_leak() -> None:
    entries = [entry("alloc", 10 * MIB, n, FORWARD, addr=BASE + n * 2**32) for n in range(40)]
    answer = build_snapshot(
        read({"segments": [draw_segment([(400, FORWARD)])], "device_traces": [entries]}), SnapshotParams()
    )
    assert answer.growth is None and "fewer than 4 steps" in plain(answer.reasons["growth"])
    assert grown(*each(0, 1, 2), steps=3).growth is None


def test_recomputed_activations_begin_no_step() -> None:
    recomputed = [*FORWARD, frame("recompute_fn", 1, "torch/utils/checkpoint.py")]
    entries: list[dict[str, Any]] = []
    for _ in range(20):
        for stack in (recomputed, BACKWARD):
            entries.append(entry("alloc", 10 * MIB, len(entries), stack, addr=BASE + len(entries) * 2**32))
    answer = build_snapshot(
        read({"segments": [draw_segment([(400, FORWARD)])], "device_traces": [entries]}), SnapshotParams()
    )
    assert answer.growth is None


def test_live_memory_that_rises_without_a_leak_names_what_grows() -> None:
    rising = [(step, step + 1, 20 * (step + 1), STACK) for step in range(6)]
    growth = grown(*rising).growth
    assert growth is not None and growth.leaks == [] and growth.live_bytes == 20 * MIB
    assert growth.rising[-1].function == "add"
    assert "rises by 20.0 MiB per pass" in plain(growth.summary) and "evaluate.py(41): add" in plain(
        growth.summary
    )
    level = grown(*each(0, 1, 2, 3, 4, 5, life=1)).growth
    assert level is not None and level.live_bytes is None and level.rising == []


def test_reserved_memory_that_rises_alone_is_fragmentation() -> None:
    def reserving(*grows: int, used: int = 0) -> MemorySnapshot:
        entries: list[dict[str, Any]] = []
        for step, size in enumerate(grows):
            need = 100 + used * step
            for action, stack, mib in (
                ("alloc", FORWARD, need),
                ("segment_alloc", FORWARD, size),
                ("alloc", BACKWARD, 10),
                ("free_completed", FORWARD, need),
                ("free_completed", BACKWARD, 10),
            ):
                if mib:
                    place = BASE + (1 + step + 100 * (stack is BACKWARD) + 1000 * (action[0] == "s")) * 2**33
                    entries.append(entry(action, mib * MIB, len(entries), stack, addr=place))
        value = {"segments": [draw_segment([(600, None)])], "device_traces": [entries]}
        return build_snapshot(read(value), SnapshotParams())

    growth = reserving(20, 20, 20, 20, 20, 20).growth
    assert growth is not None and growth.reserved_bytes == 20 * MIB
    assert "memory is fragmented" in plain(growth.summary)
    for other in (reserving(20, 0, 0, 0, 0, 0), reserving(20, 20, 20, 20, 20, 20, used=15)):
        assert other.growth is not None and other.growth.reserved_bytes is None


def test_a_leak_is_a_remedy_where_memory_ran_out_first_if_it_is_enough() -> None:
    leaking = grown(*each(0, 1, 2, 3, 4, 5), fails=True)
    (oom,) = leaking.oom
    remedies = [plain(remedy) for remedy in oom.remedies]
    assert (oom.cause, oom.requested - (oom.device_free or 0)) == ("held", 50 * MIB)
    assert remedies[0] == (
        "Free what evaluate.py(41): add keeps (`detach()`, `item()`, a shorter list): 60.0 MiB were allocated "
        "over 6 passes and never freed."
    )
    assert plain(leaking.details).startswith("Likely a leak: 60.0 MiB in 6 blocks from evaluate.py(41): add")
    little = [plain(remedy) for remedy in grown(*each(0, 1, 2, 3, 4, 5, size=5), fails=True).oom[-1].remedies]
    assert "30.0 MiB" in little[-1] and "never freed" not in little[0]
    for size, first in ((10, "Free what"), (5, "Raise `torch.cuda.set_per_process_memory_fraction`")):
        limited = grown(*each(0, 1, 2, 3, 4, 5, size=size), fails=True, device_free=1000).oom[-1]
        assert limited.cause == "limit" and len(limited.remedies) == 2
        assert plain(limited.remedies[0]).startswith(first)  # free memory of the device is of no use
    sound = grown(fails=True)
    assert not any("never freed" in plain(remedy) for remedy in sound.oom[-1].remedies)
    assert "leak" not in plain(sound.details)
