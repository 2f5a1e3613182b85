"""Which module of the program allocated: the innermost `forward` in a stack that isn't PyTorch's own code.

A snapshot names files and functions, not classes, so a module is the file of its `forward`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from torch_tb_profiler.analyses.memory.snapshot.categories import first_matching_frames
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.snapshots import RecordedSnapshot
from torch_tb_profiler.model.trace import Int32

NO_MODULE = "outside of modules"

_LIBRARY = lazy_regex(r"(?:site|dist)-packages/|^torch/|^<frozen")

_ALLOCATOR = lazy_regex(r"^(?:torch::(?:unwind|CapturedTraceback|cuda)::|c10::cuda::CUDACachingAllocator)")
"""Frames that are the same for every block: they record the stack and reserve memory."""

_TORCH = lazy_regex(r"(?:site|dist)-packages/torch/|^torch/")


@dataclass(frozen=True)
class StackModules:
    """Modules of stacks: `of_stack` has a code into `names` for each stack; names[0] is NO_MODULE."""

    of_stack: Int32
    names: list[str]


@derived
def stack_modules(snapshot: RecordedSnapshot) -> StackModules:
    """Return the module of each stack."""
    frames, texts = snapshot.frames, snapshot.texts
    codes = np.zeros(len(frames.file), np.int32)
    names = [NO_MODULE]
    by_file: dict[int, int] = {}
    forward = [code for code in np.unique(frames.name).tolist() if texts[code] == "forward"]
    for frame in np.flatnonzero(np.isin(frames.name, forward)).tolist():
        file = int(frames.file[frame])
        path = str(texts[file]).replace("\\", "/")
        if not path or _TORCH.search(path):
            continue
        if file not in by_file:
            by_file[file] = len(names)
            names.append(path)
        codes[frame] = by_file[file]
    return StackModules(first_matching_frames(snapshot, codes), names)


def program_frame(frames: Sequence[str]) -> str | None:
    """Return the innermost frame of the program's own Python code, else of any Python, else of what allocates.

    None if there are no frames.
    """
    python = [frame for frame in frames if ".py(" in frame]
    own = [frame for frame in python if not _LIBRARY.search(frame.replace("\\", "/"))]
    allocating = [frame for frame in frames if not _ALLOCATOR.search(frame)]
    return next(iter(own or python or allocating or frames), None)
