"""The callback of the Hugging Face Trainer; the only import of transformers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from torch.profiler import profile, schedule
from transformers import TrainerCallback

_log = logging.getLogger("torch_tb_profiler")


class ProfilerCallback(TrainerCallback):
    """A profiler that runs from the begin of a training to its end, and hears of each step.

    on_trace_ready  called when a recording has ended
    options         of `torch.profiler.profile`
    """

    def __init__(self, on_trace_ready: Callable[[Any], None], options: Mapping[str, Any]) -> None:
        self.on_trace_ready = on_trace_ready
        self._options = {"schedule": schedule(wait=1, warmup=1, active=8, repeat=1), **options}
        self._profile: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        def start() -> None:
            self._profile = profile(on_trace_ready=self.on_trace_ready, **self._options)
            self._profile.start()

        self._attempt(start)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._profile is not None:
            self._attempt(self._profile.step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        ended, self._profile = self._profile, None
        if ended is not None:
            self._attempt(ended.stop)

    def _attempt(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # the training goes on without a recording
            self._profile = None
            _log.warning("The training is not recorded: %s", error, exc_info=True)
