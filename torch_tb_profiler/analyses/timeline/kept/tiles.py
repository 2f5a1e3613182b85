"""Lanes, levels, classes and short names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from torch_tb_profiler.analyses.timeline import pyramid
from torch_tb_profiler.analyses.timeline.colors import classes
from torch_tb_profiler.analyses.timeline.kept.texts import packed, unpacked
from torch_tb_profiler.analyses.timeline.pyramid import Columns
from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.base.memo import seed_derived
from torch_tb_profiler.model.kernels.short_names import kernel_labels
from torch_tb_profiler.model.trace import Trace


def tile_columns(trace: Trace) -> Columns:
    """Lanes and levels (`pyramid.to_columns`), the class of every event, and the short names of kernels.

    class       int8[n]   index into CLASSES
    label.code  int32[k]  of the names with a short one, which are the texts `label`
    """
    labels = kernel_labels(trace)
    return {
        # Frames are folded when a timeline opens; who unfolds them waits for their lanes.
        **pyramid.to_columns(trace, lanes, False),
        "class": classes(trace),
        "label.code": np.array([*labels], np.int32),
        **packed("label", [*labels.values()]),
    }


def restore_tiles(trace: Trace, columns: Columns) -> None:
    """Tiles of a trace are made from these columns; ValueError or KeyError if any is missing."""
    rest = {name: column for name, column in columns.items() if name.startswith(("lane.", "level.", "key"))}
    pyramid.from_columns(trace, rest, lanes, bool)
    seed_derived(trace, classes, value=columns["class"])
    labels = zip(columns["label.code"].tolist(), unpacked("label", columns), strict=True)
    short: Mapping[int, str] = dict(labels)
    seed_derived(trace, kernel_labels, value=short)
