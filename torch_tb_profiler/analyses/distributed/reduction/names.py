"""Texts of what is kept of a rank, and codes into them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from torch_tb_profiler.model.families import short_kernel_names
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace, distinct_codes

_LONGEST = 300


class Names:
    """The texts that codes stand for; they grow by what is adopted."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.texts = list(texts)

    def adopt(self, trace: Trace, codes: Int32) -> Int32:
        """Codes into `Trace.strings` as codes into these texts, which grow by the strings in use."""
        used = distinct_codes(codes.ravel())
        table = np.full((max(used) if used else 0) + 2, NO_CODE, np.int32)  # the last cell answers for NO_CODE
        table[used] = len(self.texts) + np.arange(len(used))
        self.texts += [trace.strings[code][:_LONGEST] for code in used]
        return table[codes]


def short_names(trace: Trace, names: Iterable[str]) -> dict[str, str]:
    """Of the kernels among adopted names: name -> short name, which no other kernel of the rank has."""
    used = set(names)
    return {name[:_LONGEST]: short for name, short in short_kernel_names(trace).items() if name[:_LONGEST] in used}
