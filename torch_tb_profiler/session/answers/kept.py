"""Answers that were kept: given without the view, whose analyses take their time to import."""

from __future__ import annotations

from torch_tb_profiler.session.answers.answer import Answer
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.targets import Names, Targets


def kept_answer(files: Files, targets: Targets, slug: str, names: Names) -> Answer | None:
    """What was kept of a view's answer without parameters; None if nothing was, or the file is not read.

    The file is asked for in any case: its reading begins before the view is imported.
    """
    target = targets.find(names)
    read = files.kept_summary(target.file.id) is not None
    targets.request(target.file)
    if not read:
        return None
    target = targets.find(names)  # which part of the file it is, is known now
    payload = files.result(target.file.id, slug, target.part)
    if payload is None:
        return None
    files.answer_ahead(target.file.id, target.part)
    return Answer(slug, *target.names, files.state(target.file.id), payload)
