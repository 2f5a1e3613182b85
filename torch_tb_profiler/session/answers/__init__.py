"""Answers to views: the files are asked for, and what they hold is handed to the view."""

from __future__ import annotations

from torch_tb_profiler.session.answers.answer import Answer, Question, unavailable
from torch_tb_profiler.session.answers.answers import Answers

__all__ = ["Answer", "Answers", "Question", "unavailable"]
