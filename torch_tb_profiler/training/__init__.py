"""Recording while a model trains: what torch.profiler, Lightning and the Hugging Face Trainer call."""

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
    """A callback that records steps of the `Trainer` of Hugging Face's transformers.

        Trainer(model, arguments, callbacks=[ttp.trainer_callback("log/my_run", record_shapes=True)])

    folder, worker, summary  as of `handler`
    options  of `torch.profiler.profile`; by default 8 steps are recorded once, after two that are not
    A step is one of the optimizer, with what is accumulated for it, and an evaluation that follows a step lies in
    the next one. Nothing is raised into the training: trouble is a warning of the logger "torch_tb_profiler".
    Raises MissingExtraError if transformers is not installed.
    """
    try:
        from torch_tb_profiler.training.hugging_face import ProfilerCallback
    except ImportError as error:
        raise MissingExtraError("transformers is not installed", hint="pip install transformers") from error
    return ProfilerCallback(handler(folder, worker, summary=summary), options)
