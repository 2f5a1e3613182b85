"""Names that mark parts of the training loop, and names of Python frames.

PyTorch marks steps, waits for data, and the optimizer with annotations; before version 1.9, these events had the
category of operators. So marks are recognized by name, and only here.
"""

from __future__ import annotations

from torch_tb_profiler.base.patterns import lazy_regex

STEP_PREFIX = "ProfilerStep#"
"""Prefix of the step marks of `torch.profiler.profile.step`; the step's number follows."""

MODULE_PREFIX = "nn.Module: "
"""Prefix of the Python frames of module calls."""

LIGHTNING_HOOK_PREFIX = "[pl][profile]"
LIGHTNING_MODULE_PREFIX = "[pl][module]"
"""Prefixes of the marks of Lightning's profiler."""

DATA_PARALLEL = "DataParallel.forward"
DISTRIBUTED_DATA_PARALLEL = "DistributedDataParallel.forward"
"""Wrappers of the model; the time in them is the model's."""

BACKWARD_FLOWS = frozenset(("fwdbwd", "forward_backward"))
"""Categories of the flows from forward to backward operators, in new and old files."""

TRAINER_BATCH = "event/batch"
"""Composer's mark of a training batch: forward, backward, and optimizer, without the wait for its data."""

TRAINER_PHASES = {"event/forward": "forward", "event/loss": "forward", "event/backward": "backward"}
"""The phases of Composer's marks within a batch."""

_TRAINER = ("event/", "callback/", "algorithm/", "dataloader/")
_TRAINER_LOADER = ("event/dataloader", "dataloader/")
_WORKER_PROCESSES = "#_MultiProcessingDataLoaderIter."
_DATA_LOADER = "enumerate(DataLoader)#"
_DATA_PIPE = "enumerate(DataPipe)#"
_OPTIMIZER = ("Optimizer.step#", "Optimizer.zero_grad#")

_LINE = lazy_regex(r"\.py\(\d+\): ")
_INNER = lazy_regex(r": <(genexpr|listcomp|dictcomp|setcomp|lambda)>$")
# Code that users don't change: installed packages, the standard library, C functions.
_LIBRARY = lazy_regex(r"site-packages|dist-packages|lib/python\d|^torch/|^<")


def is_step(name: str) -> bool:
    """Return whether the name marks a step, as `ProfilerStep#5` does."""
    return name.startswith(STEP_PREFIX)


def step_number(name: str) -> str:
    """Return the "5" of "ProfilerStep#5"."""
    return name[len(STEP_PREFIX) :]


def is_data_loading(name: str) -> bool:
    """Return whether the name marks a wait for the next batch.

    PyTorch: `enumerate(DataLoader)#<iterator>.__next__`, `enumerate(DataPipe)#<pipe>`; Composer:
    `event/dataloader` and, in old versions, `dataloader/train`.
    """
    iterator = name.startswith(_DATA_LOADER) and name.endswith(".__next__")
    return iterator or name.startswith((_DATA_PIPE, *_TRAINER_LOADER))


def is_composer_event(name: str) -> bool:
    """Return whether the name is of Composer's loop: `event/forward`, `callback/<class>/event/batch_end`."""
    return name.startswith(_TRAINER)


def is_multiprocess_loading(name: str) -> bool:
    """Return whether the name marks a wait for a batch from worker processes, which no profiler records."""
    return is_data_loading(name) and _WORKER_PROCESSES in name


def is_optimizer(name: str) -> bool:
    """Return whether the name marks an optimizer: `Optimizer.step#<method>`, `Optimizer.zero_grad#<method>`."""
    return name.startswith(_OPTIMIZER)


def is_optimizer_step(name: str) -> bool:
    """Return whether the name marks an optimizer's step, as `Optimizer.step#SGD.step` does."""
    return name.startswith(_OPTIMIZER[0])


def is_user_frame(name: str) -> bool:
    """Return whether a frame is the user's code: `train.py(12): step`, but no installed package or C function."""
    return _LINE.search(name) is not None and _LIBRARY.search(name) is None


def is_anonymous_frame(name: str) -> bool:
    """Return whether a frame is a built-in function, comprehension, or lambda; its caller's name says more."""
    return name.startswith("<built-in") or (name.endswith(">") and _INNER.search(name) is not None)


def is_profiler_frame(name: str) -> bool:
    """Return whether a frame is PyTorch's own function that begins or ends an annotation."""
    return "_record_function_" in name or "torch._C._profiler." in name or "torch/autograd/profiler.py(" in name


def is_lightning_mark(name: str) -> bool:
    """Return whether the name is a hook or module that Lightning's profiler marked."""
    return name.startswith((LIGHTNING_HOOK_PREFIX, LIGHTNING_MODULE_PREFIX))


def is_training_mark(name: str) -> bool:
    """Return whether the name marks a part of the training loop or wraps the model, so that it is no operator."""
    marks_part = is_step(name) or is_data_loading(name) or is_optimizer(name)
    return marks_part or name in (DATA_PARALLEL, DISTRIBUTED_DATA_PARALLEL)
