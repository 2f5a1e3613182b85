"""Each sentence of Memory on a snapshot: recordings where it holds, and ones where it doesn't."""

from __future__ import annotations

import re
from typing import Any

from tests.support.claims import Claim, ReadSentences
from tests.support.random_jobs.surfaces import found_texts
from tests.support.snapshots import entry, frame
from tests.views.memory.test_snapshot_failures import (
    BASE,
    FORWARD,
    FULL,
    GIB,
    MIB,
    PIECES,
    STEP,
    draw_segment,
    shown_failure,
    write_failed,
)
from tests.views.memory.test_snapshot_growth import BACKWARD, OTHER_STACK, STACK, Born, accumulated, each, grown
from tests.views.memory.test_snapshot_history import instant, read
from torch_tb_profiler.views.memory.snapshot.build import build_snapshot
from torch_tb_profiler.views.memory.snapshot.payload import SnapshotParams


def of(answer: object) -> str:
    return "\n".join(sentence for _, sentence in found_texts(answer, ""))


def failing(segments: list[dict[str, Any]], request: int, free: int | None, **settings: Any) -> ReadSentences:
    """Read the sentences about a request of so many MiB that fails while so many are free."""
    return lambda: of(write_failed(segments, request, free, **settings))


def gone(released: bool) -> ReadSentences:
    """Read the sentences about a failure after which the only segment was released, or wasn't."""
    after = [entry("segment_free", 63 * MIB, 10, FORWARD, addr=BASE)] if released else []
    died = [
        entry("free_completed", 40 * MIB, 7, FORWARD, addr=BASE),
        entry("free_completed", 20 * MIB, 9, STEP, addr=BASE + 40 * MIB),
    ]
    return lambda: of(write_failed([] if released else [draw_segment([(63, None)])], 40, 10, [*died, *after]))


def on_device(used: int, free: int, request: int, device: int | None) -> ReadSentences:
    """Read the sentences about a failed request; sizes in GiB, `device`: of the GPU, None if it isn't known."""
    oom = entry("oom", request * GIB * MIB, 5, FORWARD, device_free=free * GIB * MIB)
    value = {"segments": [draw_segment([(used * GIB, STEP)])], "device_traces": [[oom]]}
    params = {} if device is None else {"device_bytes": device * GIB * MIB}
    return lambda: of(shown_failure(value, **params))


def growing(*blocks: Born, fails: bool = False, steps: int = 6) -> ReadSentences:
    """Read the sentences about steps with these blocks beside those of a forward and a backward pass."""
    return lambda: of(grown(*blocks, fails=fails, steps=steps))


def reserving(*sizes: int, used: int = 0, released: int | None = None) -> ReadSentences:
    """Read the sentences about steps that reserve these MiB more, of which tensors use `used` more in each.

    released  the step from which on they use as little as in the first one
    """

    def say() -> str:
        entries: list[dict[str, Any]] = []
        for step, size in enumerate(sizes):
            more = used * step if released is None or step < released else 0
            need, place = 100 + more, BASE + (1 + step) * 2**33
            for action, stack, mib, at in (
                ("alloc", FORWARD, need, place),
                ("segment_alloc", FORWARD, size, place + 1000 * 2**33),
                ("alloc", BACKWARD, 10, place + 100 * 2**33),
                ("free_completed", FORWARD, need, place),
                ("free_completed", BACKWARD, 10, place + 100 * 2**33),
            ):
                entries.append(entry(action, mib * MIB, len(entries), stack, addr=at))
        value = {"segments": [draw_segment([(600, None)])], "device_traces": [entries]}
        return of(build_snapshot(read(value), SnapshotParams()))

    return say


OTHER_STREAM = [*FULL, draw_segment([(30, None)], stream=7, at=BASE + 2**32)]
SAME_STREAM = [*FULL, draw_segment([(30, None)], at=BASE + 2**32)]
LARGE_POOL = {**draw_segment([(500, None)], at=BASE + 2**32), "segment_pool_id": (0, 1)}
ALL_STEPS = each(0, 1, 2, 3, 4, 5)


HELD = {
    "Checkpoint activations or use a smaller batch or sequence: activations hold {size}.": FORWARD,
    "Shard or offload the optimizer's state (FSDP, ZeRO, 8-bit optimizers): it holds {size}.": STEP,
    "Shard or quantize the parameters: they hold {size}.": [frame("__init__", 90, "torch/nn/modules/linear.py")],
    "Shard the gradients, or free them with `zero_grad(set_to_none=True)`: backward holds {size}.": BACKWARD,
    "Make the KV cache smaller (fewer or shorter sequences): it holds {size}.": [
        frame("_allocate_kv_cache", 9, "cache_engine.py")
    ],
    "Limit how many layers are gathered ahead: communication buffers hold {size}.": [
        frame("all_gather_into_tensor", 9, "x.py")
    ],
    "Limit the workspaces of libraries (`CUBLAS_WORKSPACE_CONFIG`, `torch.backends.cudnn.benchmark = False`): "
    "they hold {size}.": [frame("at::cuda::getCUDABlasLtWorkspace", 0, "??")],
}
"""Remedy -> a stack that allocates what it makes smaller."""

UNUSED: dict[str, dict[str, Any]] = {
    "Release CUDA graphs that are no longer replayed, or let them share a pool: {size} are unused in other "
    "pools.": {"segment_pool_id": (0, 3)},
    "Allocate on one stream: {size} are unused in segments of other streams.": {"stream": 7},
    "Allocate fewer tensors of the other size class (up to or above 1 MiB): {size} are unused in its segments.": {
        "segment_type": "small"
    },
}
"""Remedy -> what keeps a segment from a request that it would be large enough for."""

OTHER_CODE = [frame("load", 1, "data.py")]


def held(size: int, frames: list[Any]) -> ReadSentences:
    """Read the sentences about a request that lacks 30 MiB while this code holds so many of 60."""
    return failing([draw_segment([(size, frames), (60 - size, OTHER_CODE)])], 40, 10)


def pooled(size: int) -> ReadSentences:
    """Read the sentences about such a request while the pool of a graph holds so many MiB."""
    pool = {**draw_segment([(size, OTHER_CODE)], at=BASE + 2**32), "segment_pool_id": (0, 1)}
    return failing([draw_segment([(60 - size, OTHER_CODE)]), pool], 40, 10)


def unused(more: dict[str, Any]) -> ReadSentences:
    """Read the sentences about a request of 25 MiB while another segment has 30 that it can't use."""
    return failing([*FULL, {**draw_segment([(30, None)], at=BASE + 2**32), **more}], 25, 1)


def pattern(template: str, size: str) -> str:
    return re.escape(template.replace("{size}", size))


CLAIMS = [
    *(
        Claim(template, pattern(template, "40.0 MiB"), held(40, frames), "other code holds it", held(20, frames))
        for template, frames in HELD.items()
    ),
    Claim(
        "Capture fewer CUDA graphs, or let them share a pool: their pools hold {size}.",
        r"let them share a pool: their pools hold 40\.0 MiB\.",
        pooled(40),
        "they hold less than is lacking",
        pooled(20),
    ),
    *(
        Claim(template, pattern(template, "30.0 MiB"), unused(more), "it can be used", unused({}))
        for template, more in UNUSED.items()
    ),
    # ---- why an allocation failed
    Claim(
        "Out of memory on {device}: {size} requested, {free}.",
        r"Out of memory on GPU 0: 40\.0 MiB requested, 10\.0 MiB free\.",
        failing(FULL, 40, 10),
        "what is free isn't recorded",
        failing(FULL, 40, None),
    ),
    Claim(
        "The state at that moment isn't known.",
        "The state at that moment isn't known",
        gone(True),
        "the segment is still there, so that the history leads back to it",
        gone(False),
    ),
    Claim(
        "Fragmentation: {unused} are reserved but unused, and the largest free block is {largest}{others}.",
        r"Fragmentation: 23\.0 MiB are reserved but unused, and the largest free block is 12\.0 MiB\.",
        failing(PIECES, 20, 1),
        "all that is free is too little for the request",
        failing(PIECES, 25, 1),
    ),
    Claim(
        "Fragmentation: {unused} are reserved but unused, and the largest free block is {largest}{others}.",
        r"23\.0 MiB are .* is 12\.0 MiB; 500 MiB more are unused in other streams or pools\.",
        failing([*PIECES, LARGE_POOL], 20, 1),
        "no other pool has a free block, let alone a larger one",
        failing(PIECES, 20, 1),
    ),
    Claim(
        "{used} are in use{top}, {unused} reserved but unused.",
        r"60\.0 MiB are in use \(60\.0 MiB from evaluate\.py\(41\): add\)",
        failing([draw_segment([(60, STACK)])], 40, 10),
        "code of the program's own called that of the library",
        failing([draw_segment([(60, STACK[:1])])], 40, 10),
    ),
    Claim(
        "{unused} are reserved but unused in other streams or pools, which this request can't use.",
        r"30\.0 MiB are reserved but unused in other streams or pools, which this request can't use\.",
        failing(OTHER_STREAM, 25, 1),
        "they are of the request's stream",
        failing(SAME_STREAM, 25, 1),
    ),
    Claim(
        "Enough is free, so a limit of the process or a reservation elsewhere refused it.",
        "Enough is free, so a limit of the process or a reservation elsewhere refused it",
        failing(FULL, 20, 20),
        "a MiB is lacking",
        failing(FULL, 20, 19),
    ),
    Claim(
        "{used} are in use{top}, {unused} reserved but unused.",
        r"60\.0 MiB are in use \(40\.0 MiB activations\), 3\.00 MiB reserved but unused\.",
        failing([draw_segment([(40, FORWARD), (20, STEP), (3, None)])], 40, 10),
        "the optimizer holds the 40 MiB",
        failing([draw_segment([(40, STEP), (20, FORWARD), (3, None)])], 40, 10),
    ),
    # ---- what makes room
    Claim(
        "Allocate fewer different sizes (pad or bucket the inputs): {free} are free in pieces although segments "
        "are expandable.",
        r"Allocate fewer different sizes \(pad or bucket the inputs\): 24\.0 MiB are free in pieces although",
        failing(PIECES, 20, 1, expandable_segments=True),
        "segments aren't expandable",
        failing(PIECES, 20, 1),
    ),
    Claim(
        "Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: {free} are free in pieces, enough for this "
        "request.",
        r"expandable_segments:True`: 24\.0 MiB are free in pieces, enough for this request\.",
        failing(PIECES, 20, 1),
        "it is set",
        failing(PIECES, 20, 1, expandable_segments=True),
    ),
    Claim(
        "Raise `torch.cuda.set_per_process_memory_fraction`, if the program sets it.",
        "Raise `torch.cuda.set_per_process_memory_fraction`",
        failing(FULL, 20, 20),
        "too little is free",
        failing(FULL, 20, 19),
    ),
    Claim(
        "Stop other processes on this GPU: {size} are held outside this process's allocator.",
        r"Stop other processes on this GPU: 75\.0 GiB are held outside this process's allocator\.",
        on_device(4, 1, 3, 80),
        "the GPU has little more than this process holds",
        on_device(4, 1, 3, 6),
    ),
    Claim(
        "Request less at once: if this process freed everything else, {size} would be available.",
        r"Request less at once: if this process freed everything else, 74\.0 GiB would be available\.",
        on_device(4, 70, 200, 80),
        "so much is requested",
        on_device(4, 70, 74, 80),
    ),
    Claim(
        "Look for other processes with `nvidia-smi`: if the GPU has more than {size}, they hold the rest.",
        r"Look for other processes with `nvidia-smi`: if the GPU has more than 5\.00 GiB, they hold the rest\.",
        on_device(4, 1, 3, None),
        "the process holds as much as a GPU has",
        on_device(70, 1, 3, None),
    ),
    Claim(
        "At least {missing} must be freed for this request to fit.",
        r"At least 1\.66 GiB must be freed for this request to fit\.",  # 1,706 MiB
        failing([draw_segment([(1700, FORWARD), (20, STEP), (3, None)])], 1719, 10),
        "10 MiB more are free",
        failing([draw_segment([(1700, FORWARD), (20, STEP), (3, None)])], 1719, 20),
    ),
    Claim(
        "Free what {name} keeps (`detach()`, `item()`, a shorter list): {size} were allocated over {steps} and "
        "never freed{others}.",
        r"Free what evaluate\.py\(41\): add keeps .*: 60\.0 MiB were allocated over 6 passes and never freed\.",
        growing(*ALL_STEPS, fails=True),
        "each block is freed two steps later",
        growing(*each(0, 1, 2, 3, 4, 5, life=2), fails=True),
    ),
    Claim(
        "Free what {name} keeps (`detach()`, `item()`, a shorter list): {size} were allocated over {steps} and "
        "never freed{others}.",
        r"add keeps .*: 60\.0 MiB were .* never freed; 1 other place keeps 30\.0 MiB\.",
        growing(*ALL_STEPS, *each(0, 1, 2, 3, 4, 5, size=5, stack=OTHER_STACK), fails=True),
        "the other place frees what it allocates",
        growing(*ALL_STEPS, *each(0, 1, 2, 3, 4, 5, size=5, life=2, stack=OTHER_STACK), fails=True),
    ),
    # ---- what grows
    Claim(
        "Likely a leak: {size} in {blocks} from {name} were allocated in {born} of {steps} and never freed.",
        r"were allocated in 8 of 8 steps and never freed",
        lambda: of(accumulated(passes=4, optimized=range(8))),
        "the optimizer allocates nothing, so how many passes make a step isn't known",
        lambda: of(accumulated(passes=4, optimized=())),
    ),
    Claim(
        "Likely a leak: {size} in {blocks} from {name} were allocated in {born} of {steps} and never freed.",
        r"Likely a leak: 60\.0 MiB in 6 blocks from evaluate\.py\(41\): add were allocated in 6 of 6 passes",
        growing(*ALL_STEPS),
        "each block is freed two steps later",
        growing(*each(0, 1, 2, 3, 4, 5, life=2)),
    ),
    Claim(
        "Likely a leak: {size} in {blocks} from {name} were allocated in {born} of {steps} and never freed.",
        r"Likely a leak: 40\.0 MiB in 4 blocks from evaluate\.py\(41\): add were allocated in 4 of 12 passes",
        growing(*each(1, 4, 7, 10), steps=12),
        "the intervals aren't regular: a cache that meets new sizes",
        growing(*each(1, 2, 3, 10), steps=12),
    ),
    Claim(
        "The same goes for {places}.",
        r"The same goes for 1 other place\.",
        growing(*ALL_STEPS, *each(0, 1, 2, 3, 4, 5, stack=OTHER_STACK)),
        "the blocks of the other place are freed",
        growing(*ALL_STEPS, *each(0, 1, 2, 3, 4, 5, life=2, stack=OTHER_STACK)),
    ),
    Claim(
        "Memory in use rises by {size} per {noun}{name}.",
        r"Memory in use rises by 20\.0 MiB per pass, most of it from evaluate\.py\(41\): add\.",
        growing(*((step, step + 1, 20 * (step + 1), STACK) for step in range(6))),
        "each block is as large",
        growing(*each(0, 1, 2, 3, 4, 5, life=1, size=20)),
    ),
    Claim(
        "Memory in use rises by {size} per {noun}{name}.",
        r"Memory in use rises by 20\.0 MiB per pass\.",
        growing(
            *((step, step + 1, 10 * (step + 1), STACK) for step in range(6)),
            *((step, step + 1, 10 * (step + 1), OTHER_STACK) for step in range(6)),
        ),
        "one place has all of it",
        growing(*((step, step + 1, 20 * (step + 1), STACK) for step in range(6))),
    ),
    Claim(
        "Reserved memory rises by {size} per {noun} while tensors use {used}: memory is fragmented.",
        r"Reserved memory rises by 20\.0 MiB per pass while tensors use no more: memory is fragmented\.",
        reserving(20, 20, 20, 20, 20, 20),
        "tensors use 15 MiB more in each step",
        reserving(20, 20, 20, 20, 20, 20, used=15),
    ),
    Claim(
        "Reserved memory rises by {size} per {noun} while tensors use {used}: memory is fragmented.",
        r"while tensors use only 8\.00 MiB more: memory is fragmented\.",
        reserving(20, 20, 20, 20, 20, 20, used=8),
        "tensors use no more",
        reserving(20, 20, 20, 20, 20, 20),
    ),
    Claim(
        "Reserved memory rises by {size} per {noun} while tensors use {used}: memory is fragmented.",
        "while tensors use no more: memory is fragmented",
        reserving(20, 20, 20, 20, 20, 20),
        "a list of tensors grew until it was released, and the allocator keeps what that needed",
        reserving(20, 20, 20, 20, 20, 20, used=18, released=4),
    ),
    Claim(
        "No sign of a leak over {steps}.",
        r"No sign of a leak over 6 passes\.",
        growing(*each(0, 1, 2, 3, 4, 5, life=2)),
        "the blocks are never freed",
        growing(*ALL_STEPS),
    ),
    # ---- an instant
    Claim(
        "{size} in use on {device} {moment}{step}, {reserved} reserved.",
        r"68\.0 MiB in use on GPU 0 after entry 1 \(ProfilerStep#3\), 130 MiB reserved\.",
        lambda: of(instant(entry=1)),
        "it is the end",
        lambda: of(instant()),
    ),
]

NO_CLAIMS: dict[str, str] = {}
"""Templates that say nothing that a recording could make false, with the reason."""
