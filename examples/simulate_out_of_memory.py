"""Simulates the memory snapshots of a job of four GPUs, one of which runs out of memory: nothing is measured.

    python examples/simulate_out_of_memory.py --logdir samples

Four ranks train a transformer on batches whose sequences differ in length. Rank 2 collects a tensor of each step
in a list until it runs out of memory; then every rank writes a snapshot, as `_dump_snapshot` does.
"""

from __future__ import annotations

import argparse
import gzip
import pickle
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RUN = "simulated_out_of_memory"
RANKS, LEAKING_RANK = 4, 2
MAX_STEPS = 12

MIB = 1 << 20
CAPACITY = 81_079 * MIB
CONTEXT = 507 * MIB
"""What the CUDA context takes of the device."""

LAYERS, WIDTH, BATCH, VOCABULARY = 20, 4096, 8, 32_000
SMALL, MEDIUM = MIB, 10 * MIB
BASE, APART = 0x7F00_0000_0000, 1 << 37
EPOCH_US = 1_760_000_000_000_000

Stack = list[dict[str, Any]]

_MODULE, _OPTIM = "torch/nn/modules/module.py", "torch/optim/adamw.py"
_FRAMES: dict[tuple[str, int, str], dict[str, Any]] = {}


class OutOfMemoryError(Exception):
    """The device has no room for an allocation."""


def frame(file: str, line: int, name: str) -> dict[str, Any]:
    """Return a frame; PyTorch shares the object among all stacks that hold it."""
    path = f"/usr/lib/python3.12/site-packages/{file}" if file.startswith("torch/") else f"/job/{file}"
    return _FRAMES.setdefault((file, line, name), {"filename": path, "line": line, "name": name})


def stack(*frames: tuple[str, int, str]) -> Stack:
    """Return a stack, innermost frame first, as the program's main loop has it."""
    return [frame(*each) for each in (*frames, ("train.py", 74, "train"), ("train.py", 96, "<module>"))]


_CALL = ((_MODULE, 1786, "_call_impl"), (_MODULE, 1775, "_wrapped_call_impl"))
_MODEL = (*_CALL, ("model.py", 61, "forward"), *_CALL)

PARAMETER = stack(("torch/nn/modules/linear.py", 106, "__init__"), ("model.py", 18, "__init__"))
ATTENTION = stack(("model.py", 34, "forward"), *_CALL, ("model.py", 49, "forward"), *_MODEL)
SCORES = stack(
    ("torch/nn/functional.py", 6012, "scaled_dot_product_attention"), ("model.py", 36, "forward"), *_MODEL
)
MLP = stack(("torch/nn/modules/linear.py", 125, "forward"), *_CALL, ("model.py", 52, "forward"), *_MODEL)
NORM = stack(("torch/nn/modules/normalization.py", 217, "forward"), *_CALL, ("model.py", 48, "forward"), *_MODEL)
LOGITS = stack(("torch/nn/modules/linear.py", 125, "forward"), *_CALL, ("model.py", 66, "forward"), *_CALL)
BACKWARD = stack(("torch/autograd/graph.py", 829, "_engine_run_backward"), ("torch/_tensor.py", 648, "backward"))
MOMENTS = stack((_OPTIM, 179, "_init_group"), (_OPTIM, 231, "step"))
WORKSPACE = stack(("??", 0, "at::cuda::getCUDABlasLtWorkspace()"), *_CALL)
BATCH_COPY = stack(("data.py", 27, "to_device"))
SCORES_STACK = stack(("evaluate.py", 41, "add_scores"))


@dataclass
class Block:
    """A block of a segment; `frames` is None while it is free."""

    address: int
    size: int
    requested: int = 0
    frames: Stack | None = None


@dataclass
class Segment:
    """What one `cudaMalloc` returned."""

    address: int
    size: int
    small: bool
    blocks: list[Block]


@dataclass
class Allocator:
    """PyTorch's caching allocator in short: best fit, blocks are split and joined, empty segments are released."""

    segments: list[Segment] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    time: int = EPOCH_US
    next_address: int = BASE
    parameters: list[Block] = field(default_factory=list)

    @property
    def free(self) -> int:
        """Bytes that are free on the device."""
        return CAPACITY - CONTEXT - sum(segment.size for segment in self.segments)

    def record(self, action: str, address: int, size: int, frames: Stack) -> None:
        self.time += 37
        place = {"device_free": self.free} if action == "oom" else {"addr": address}
        entry = {"action": action, **place, "size": size, "stream": 0, "time_us": self.time}
        more = {"compile_context": "N/A", "user_metadata": "", "pool_id": (0, 0), "frames": frames}
        self.entries.append(entry | more)

    def note(self, name: str, stage: str) -> None:
        self.notes.append({"name": name, "stage": stage, "device": 0, "time_us": self.time})

    def allocate(self, size: int, frames: Stack) -> Block:
        """Return a block for `size` bytes. Raises OutOfMemoryError, which the history records."""
        rounded, small = -(-size // 512) * 512, size <= SMALL
        segment, block = self._best_fit(rounded, small) or self._new_segment(rounded, small, size, frames)
        rest = block.size - rounded
        if rest >= 512 if small else rest > SMALL:
            position = segment.blocks.index(block)
            segment.blocks.insert(position + 1, Block(block.address + rounded, rest))
            block.size = rounded
        block.requested, block.frames = size, frames
        self.record("alloc", block.address, size, frames)
        return block

    def release(self, block: Block) -> None:
        """Free a block and join it with its free neighbors."""
        assert block.frames is not None
        for action in ("free_requested", "free_completed"):
            self.record(action, block.address, block.requested, block.frames)
        block.requested, block.frames = 0, None
        segment = next(each for each in self.segments if 0 <= block.address - each.address < each.size)
        joined: list[Block] = []
        for each in segment.blocks:
            if joined and joined[-1].frames is None and each.frames is None:
                joined[-1].size += each.size
            else:
                joined.append(each)
        segment.blocks = joined

    def _best_fit(self, size: int, small: bool) -> tuple[Segment, Block] | None:
        fits = [
            (segment, block)
            for segment in self.segments
            if segment.small == small
            for block in segment.blocks
            if block.frames is None and block.size >= size
        ]
        return min(fits, key=lambda fit: (fit[1].size, fit[1].address), default=None)

    def _new_segment(self, rounded: int, small: bool, size: int, frames: Stack) -> tuple[Segment, Block]:
        total = 2 * MIB if small else 20 * MIB if rounded < MEDIUM else -(-rounded // (2 * MIB)) * 2 * MIB
        if total > self.free:
            self._release_empty(frames)
        if total > self.free:
            self.record("oom", 0, size, frames)
            raise OutOfMemoryError
        segment = Segment(self.next_address, total, small, [Block(self.next_address, total)])
        self.next_address += APART
        self.segments.append(segment)
        self.record("segment_alloc", segment.address, total, frames)
        return segment, segment.blocks[0]

    def _release_empty(self, frames: Stack) -> None:
        for segment in [each for each in self.segments if all(block.frames is None for block in each.blocks)]:
            self.segments.remove(segment)
            self.record("segment_free", segment.address, segment.size, frames)


def train_step(allocator: Allocator, length: int, leaks: bool) -> None:
    """Run a step on a batch of sequences of a length; the first one also makes model and optimizer state."""
    if not allocator.parameters:
        allocator.parameters = [allocator.allocate(12 * WIDTH * WIDTH * 2, PARAMETER) for _ in range(LAYERS)]
        allocator.parameters += [allocator.allocate(VOCABULARY * WIDTH * 2, PARAMETER) for _ in range(2)]
        allocator.allocate(8_519_680, WORKSPACE)
    parameters, first = allocator.parameters, not allocator.notes
    step = f"ProfilerStep#{len(allocator.notes) // 2}"
    allocator.note(step, "START")
    tokens = BATCH * length
    batch = allocator.allocate(tokens * 8, BATCH_COPY)
    saved = [forward_layer(allocator, tokens) for _ in range(LAYERS)]
    logits = allocator.allocate(tokens * VOCABULARY * 2, LOGITS)
    if leaks:
        allocator.allocate(tokens * WIDTH * 8, SCORES_STACK)
    gradients = [allocator.allocate(parameters[-1].requested, BACKWARD)]
    allocator.release(logits)
    for activations, parameter in zip(reversed(saved), parameters, strict=False):
        gradients.append(allocator.allocate(parameter.requested, BACKWARD))
        for block in reversed(activations):
            grown = allocator.allocate(block.requested, BACKWARD)
            allocator.release(block)
            allocator.release(grown)
    for parameter in parameters if first else ():
        for _ in range(2):
            allocator.allocate(parameter.requested * 2, MOMENTS)
    for block in (*gradients, batch):
        allocator.release(block)
    allocator.note(step, "END")


def forward_layer(allocator: Allocator, tokens: int) -> list[Block]:
    """Return what a layer saves for its backward pass."""
    shared = [
        allocator.allocate(tokens * WIDTH * 2, NORM),
        allocator.allocate(tokens * WIDTH * 2 * 3, ATTENTION),
        allocator.allocate(tokens * 32 * 4, SCORES),
        allocator.allocate(tokens * WIDTH * 2, ATTENTION),
        allocator.allocate(tokens * WIDTH * 2, NORM),
    ]
    return [*shared, allocator.allocate(tokens * WIDTH * 2 * 4, MLP), allocator.allocate(tokens * WIDTH * 8, MLP)]


def dump(allocator: Allocator) -> dict[str, Any]:
    """Return a snapshot as PyTorch writes it, with a key that says that it was simulated."""
    segments = [
        {
            "device": 0,
            "address": segment.address,
            "total_size": segment.size,
            "allocated_size": sum(block.size for block in segment.blocks if block.frames is not None),
            "stream": 0,
            "segment_type": "small" if segment.small else "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "blocks": [
                {
                    "address": block.address,
                    "size": block.size,
                    "requested_size": block.requested,
                    "state": "inactive" if block.frames is None else "active_allocated",
                    "frames": block.frames or [],
                }
                for block in segment.blocks
            ],
        }
        for segment in allocator.segments
    ]
    return {
        "segments": segments,
        "device_traces": [allocator.entries],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False},
        "external_annotations": allocator.notes,
        "simulated": True,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logdir", type=Path, default=Path("log"))
    options = parser.parse_args()
    folder = options.logdir / RUN
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(2)
    lengths = [draw.randrange(1280, 1920, 32) for _ in range(MAX_STEPS)]  # all ranks draw from the same bucket
    failed, steps = Allocator(), 0
    try:
        for length in lengths:
            steps += 1
            train_step(failed, length, leaks=True)
    except OutOfMemoryError:
        print(f"rank {LEAKING_RANK} ran out of memory in step {steps}")
    for rank in range(RANKS):
        allocator = failed if rank == LEAKING_RANK else Allocator()
        for length in lengths[:steps] if rank != LEAKING_RANK else ():
            train_step(allocator, length, leaks=False)
        content = pickle.dumps(dump(allocator), protocol=4)
        path = folder / f"rank{rank}_memory_snapshot.pickle.gz"
        with open(path, "wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            packed.write(content)
    print(f"the simulated snapshots were written to {folder}")


if __name__ == "__main__":
    main()
