"""What keeps more blocks off a multiprocessor, where every number for the answer is recorded."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.kernels.limits import LIMITERS, limiters

CARD = {
    "id": 0,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 65536,
}
KNOWN = "block=[1024,1,1] registers per thread=16 shared memory=0"


@pytest.mark.parametrize(
    ("launch", "device", "card", "limiter"),
    [
        (KNOWN, 0, CARD, "threads"),
        (KNOWN + " blocks per SM=1.5", 0, CARD, "threads"),  # two at most on some multiprocessor, as many as fit
        (KNOWN + " blocks per SM=0.5", 0, CARD, "grid"),
        (KNOWN, 1, CARD, None),  # nobody describes that card
        (KNOWN, 0, {**CARD, "regsPerMultiprocessor": None}, None),
        (KNOWN.replace("=16", "=0"), 0, CARD, None),  # no kernel runs without registers
        (KNOWN.replace(" shared memory=0", ""), 0, CARD, None),
        (KNOWN.replace("[1024,1,1]", "[1024]"), 0, CARD, None),
    ],
)
def test_an_answer_takes_all_numbers(
    launch: str, device: int, card: dict[str, object], limiter: str | None
) -> None:
    trace = draw(f"gpu{device} kernel k 0 1 stream=7 {launch}", deviceProperties=[card])
    (code,) = limiters(trace, np.array([0], np.int32)).tolist()
    assert (LIMITERS[code] if code >= 0 else None) == limiter
