"""The callback for the Hugging Face Trainer; the only module that imports transformers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from torch.profiler import profile, schedule
from transformers import TrainerCallback

_log = logging.getLogger("torch_tb_profiler")


class ProfilerCallback(TrainerCallback):
    """A profiler that starts and stops with the training and counts its steps.

    on_trace_ready  called when a recording has ended
    options         passed to `torch.profiler.profile`
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
        finished, self._profile = self._profile, None
        if finished is not None:
            self._attempt(finished.stop)

    def _attempt(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # an error in the profiler must not stop the training
            self._profile = None
            _log.warning("The training is not profiled: %s", error, exc_info=True)
