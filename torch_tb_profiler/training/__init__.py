"""Callbacks that record a training: for torch.profiler, Lightning, and the Hugging Face Trainer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from torch_tb_profiler.base.errors import MissingExtraError
from torch_tb_profiler.training.trace_ready import handler

if TYPE_CHECKING:
    from torch_tb_profiler.training.hugging_face import ProfilerCallback

__all__ = ["handler", "trainer_callback"]


def trainer_callback(
    folder: str | os.PathLike[str], worker: str | None = None, *, summary: bool = True, **options: Any
) -> ProfilerCallback:
    """Return a callback that records steps of the `Trainer` of Hugging Face's transformers.

        Trainer(model, arguments, callbacks=[ttp.trainer_callback("log/my_run", record_shapes=True)])

    folder, worker, summary  as for `handler`
    options  passed to `torch.profiler.profile`; by default it records 8 steps once, after skipping two
    A step is an optimizer step with its accumulated batches; an evaluation after a step counts to the next one.
    The callback never raises into the training: errors are logged as warnings by "torch_tb_profiler".
    Raises MissingExtraError if transformers is not installed.
    """
    try:
        from torch_tb_profiler.training.hugging_face import ProfilerCallback
    except ImportError as error:
        raise MissingExtraError("transformers is not installed", hint="pip install transformers") from error
    return ProfilerCallback(handler(folder, worker, summary=summary), options)
