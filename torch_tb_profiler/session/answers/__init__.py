"""Answer requests for views: from the cache, or by loading the files and building the view."""

from __future__ import annotations

from torch_tb_profiler.session.answers.answer import (
    Answer,
    ViewRequest,
    unavailable_reasons,
    unavailable_without_trace,
)
from torch_tb_profiler.session.answers.answers import Answers

__all__ = ["Answer", "Answers", "ViewRequest", "unavailable_reasons", "unavailable_without_trace"]
