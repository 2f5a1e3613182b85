"""What bounds a step, in words: the same in every view."""

from __future__ import annotations

from collections.abc import Mapping

from torch_tb_profiler.base.format import format_ratio
from torch_tb_profiler.views._shared.text import Phrase, Text, text

_SUBJECTS = {
    "host": "The host",
    "device": "Device work",
    "communication": "Communication",
    "latency": "Latency between host and device",
}


def bounded(times: Mapping[str, float], whole: str, evidence: str) -> tuple[str, Text]:
    """(the part with most of the path, "The host bounds 92% of the step"); some time passes on the path.

    times  ns of the path by `analyses.schedule.categories.BOUNDS`; evidence: what a click on the share opens
    """
    bound = max(times, key=lambda each: times[each])
    share = Phrase(f"{format_ratio(times[bound] / sum(times.values()))} of {whole}", evidence)
    return bound, text("{subject} bounds {share}", subject=_SUBJECTS[bound], share=share)
