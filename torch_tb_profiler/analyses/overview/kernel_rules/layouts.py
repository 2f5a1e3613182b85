"""Images in NCHW whose convolutions want NHWC."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding, is_too_short
from torch_tb_profiler.analyses.overview.kernel_rules.excess import other_device_work, times_after_share
from torch_tb_profiler.analyses.shared.attainable import roofline_shares
from torch_tb_profiler.base.patterns import AnyCase
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import Kind, event_intervals, rows_of_kind
from torch_tb_profiler.model.trace import Trace, name_mask

_CONVERSION = AnyCase("nchwtonhwc nchwtofoldednhwc nhwctonchw nhwctofoldednchw")
"""Kernels of cuDNN that only convert between layouts."""

_BATCH_NORM = AnyCase("batchnorm batch_norm bn_fw bn_bw")


def find_layout_conversions(trace: Trace) -> Iterator[Finding]:
    """Find conversions between NCHW and NHWC, for convolutions that want another layout than the tensors have.

    Without them, convolutions and batch norms run in other kernels, too: what these take beyond the roofline may
    go as well.
    """
    kernels = rows_of_kind(trace, Kind.KERNEL)
    names = trace.events.name[kernels]
    converts = name_mask(trace.strings, _CONVERSION.search, names)[names]
    conversions = kernels[converts]
    if is_too_short(trace, event_intervals(trace, conversions)):
        return
    in_layout = family_codes(trace)[kernels] == FAMILIES.index("convolution")
    in_layout |= name_mask(trace.strings, _BATCH_NORM.search, names)[names]
    found = converts | in_layout
    rows = kernels[found]
    share = np.where(converts[found], 0, np.nan_to_num(roofline_shares(trace, rows)))
    yield Finding(
        "layout_conversion",
        times_after_share(trace, rows, share),
        other_device_work(trace, rows),
        rows,
        on_device=True,
        value=len(conversions),
        event=int(conversions[np.argmax(trace.events.duration[conversions])]),
    )
