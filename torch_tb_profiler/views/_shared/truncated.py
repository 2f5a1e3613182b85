"""What every view says first of a file that is cut off."""

from __future__ import annotations

from torch_tb_profiler.views._shared.text import Text, text


def truncated() -> Text:
    """Instead of a verdict on a file of which nobody knows what it lacks."""
    return text(
        "The file is cut off: what is shown comes before the cut, and as a rule the work of the devices comes "
        "after. "
        "How a step is spent cannot be told from it."
    )
