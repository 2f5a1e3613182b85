"""Steps in which no time passes: every view says that, and none that there is no step."""

from __future__ import annotations

from tests.support.claims import read_sentences
from tests.support.traces import draw

ZERO = """
host  user_annotation  ProfilerStep#0  0  0
gpu0  kernel           k               0  0  stream=7
"""


def test_a_step_without_time_is_a_complete_step() -> None:
    overview, idle = read_sentences("overview", draw(ZERO)), read_sentences("idle", draw(ZERO))
    assert "No time passes in the step." in overview
    assert "1 complete step recorded." in overview
    assert "No advice: no time passes in steps." in overview
    assert idle.startswith("No time passes in the step.")
    assert "no complete step" not in overview + idle
