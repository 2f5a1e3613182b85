"""What the names of marks mean: steps, waits for data, the optimizer, wrappers of the model, flows to backward;
and which Python frames are the user's.

PyTorch marks parts of the training loop with annotations, and before version 1.9 with events of the category of
operators. So every layer asks for them by name, and asks here: one name means the same everywhere.
"""

from __future__ import annotations

import re

STEP_PREFIX = "ProfilerStep#"
"""Followed by the number of the step: `torch.profiler.profile.step`."""

MODULE_PREFIX = "nn.Module: "
"""Python frames of module calls."""

LIGHTNING_HOOK_PREFIX = "[pl][profile]"
LIGHTNING_MODULE_PREFIX = "[pl][module]"
"""Marks of Lightning's profiler."""

DATA_PARALLEL = "DataParallel.forward"
DISTRIBUTED_DATA_PARALLEL = "DistributedDataParallel.forward"
"""Wrappers of the model: the time in them is the model's."""

BACKWARD_FLOWS = frozenset(("fwdbwd", "forward_backward"))
"""Categories of the flows from forward to backward operators, in files of today and of old."""

TRAINER_BATCH = "event/batch"
"""Composer's batch of training: forward, backward and the optimizer, without the wait for its data."""

TRAINER_PHASES = {"event/forward": "forward", "event/loss": "forward", "event/backward": "backward"}
"""Composer's marks of what a batch does."""

_TRAINER = ("event/", "callback/", "algorithm/", "dataloader/")
_TRAINER_LOADER = ("event/dataloader", "dataloader/")
_WORKER_PROCESSES = "#_MultiProcessingDataLoaderIter."
_DATA_LOADER = "enumerate(DataLoader)#"
_DATA_PIPE = "enumerate(DataPipe)#"
_OPTIMIZER = ("Optimizer.step#", "Optimizer.zero_grad#")

_LINE = re.compile(r"\.py\(\d+\): ")
# Code that a user does not change: installed packages, the standard library, C functions.
_INNER = re.compile(r": <(genexpr|listcomp|dictcomp|setcomp|lambda)>$")
_LIBRARY = re.compile(r"site-packages|dist-packages|lib/python\d|^torch/|^<")


def is_step(name: str) -> bool:
    """`ProfilerStep#5`."""
    return name.startswith(STEP_PREFIX)


def step_number(name: str) -> str:
    """The "5" of "ProfilerStep#5"."""
    return name[len(STEP_PREFIX) :]


def is_data_loading(name: str) -> bool:
    """A wait for the next batch: `enumerate(DataLoader)#<iterator>.__next__`, `enumerate(DataPipe)#<pipe>`,
    Composer's `event/dataloader` and, in old versions, `dataloader/train`."""
    iterator = name.startswith(_DATA_LOADER) and name.endswith(".__next__")
    return iterator or name.startswith((_DATA_PIPE, *_TRAINER_LOADER))


def is_composer_event(name: str) -> bool:
    """An event of Composer's training loop: `event/forward`, `callback/<class>/event/batch_end`."""
    return name.startswith(_TRAINER)


def is_multiprocess_loading(name: str) -> bool:
    """A wait for the next batch from worker processes, which load it and which no profiler records."""
    return is_data_loading(name) and _WORKER_PROCESSES in name


def is_optimizer(name: str) -> bool:
    """`Optimizer.step#SGD.step`, `Optimizer.zero_grad#SGD.zero_grad`: what PyTorch marks of its optimizers."""
    return name.startswith(_OPTIMIZER)


def is_optimizer_step(name: str) -> bool:
    """`Optimizer.step#SGD.step`."""
    return name.startswith(_OPTIMIZER[0])


def is_user_frame(name: str) -> bool:
    """`train.py(12): step` in a folder of one's own; frames of installed packages and C functions are not."""
    return _LINE.search(name) is not None and _LIBRARY.search(name) is None


def is_anonymous_frame(name: str) -> bool:
    """A built-in function, a comprehension, a lambda: the function around it has the name that people look for."""
    return name.startswith("<built-in") or _INNER.search(name) is not None


def is_profiler_frame(name: str) -> bool:
    """A function of PyTorch that begins or ends an annotation, recorded with the program's own."""
    return "_record_function_" in name or "torch._C._profiler." in name or "torch/autograd/profiler.py(" in name


def is_lightning_mark(name: str) -> bool:
    """A hook or a module that Lightning's profiler marked."""
    return name.startswith((LIGHTNING_HOOK_PREFIX, LIGHTNING_MODULE_PREFIX))


def is_training_mark(name: str) -> bool:
    """Any part of the training loop, and wrappers of the model: no operator, whatever its category."""
    marks = is_step(name) or is_data_loading(name) or is_optimizer(name)
    return marks or name in (DATA_PARALLEL, DISTRIBUTED_DATA_PARALLEL)
