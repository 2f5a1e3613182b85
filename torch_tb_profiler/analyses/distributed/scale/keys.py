"""What ranks may be ordered and joined by: themselves, their hosts, their places in process groups."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.scale.dimensions import Dimension
from torch_tb_profiler.base.text import natural_sort_key
from torch_tb_profiler.model.trace import NO_CODE, Int64


class Keys(msgspec.Struct, frozen=True):
    """values int64[ranks]: the key of each rank, NO_CODE if it has none; names: what each key is called."""

    values: Int64
    names: list[str]


def keys_by(comparison: Comparison, dimensions: Sequence[Dimension]) -> dict[str, Keys]:
    """By rank; by host if there are several; by place in the groups of each family that has several."""
    sources = comparison.sources
    ranks = [source.worker if source.rank is None else str(source.rank) for source in sources]
    keys = {"rank": Keys(np.arange(len(sources)), ranks)}
    hosts = sorted({source.host for source in sources if source.host is not None}, key=natural_sort_key)
    if len(hosts) > 1:
        codes = {host: code for code, host in enumerate(hosts)}
        values = [NO_CODE if source.host is None else codes[source.host] for source in sources]
        keys["host"] = Keys(np.array(values, np.int64), hosts)
    for dimension in dimensions:
        if len(dimension.groups) > 1:
            places = range(int(dimension.place.max(initial=NO_CODE)) + 1)
            keys.setdefault(dimension.label, Keys(dimension.place, [str(place) for place in places]))
    return keys
