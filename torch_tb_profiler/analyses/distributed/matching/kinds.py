"""What the name of a collective says about it."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.model.communication.names import ALL_TO_ALL, MESSAGES
from torch_tb_profiler.model.trace import name_mask

_UNSPECIFIC = ("unknown", "send_recv", "coalesced")
"""Names that do not say which collective it is, so that they contradict none."""

_MAY_DIFFER = frozenset((*ALL_TO_ALL, "gather", "scatter", "barrier"))
"""Collectives in which ranks may move different amounts."""


class Kinds:
    """By code of the job's names (the last cell answers for NO_CODE):

    family      int64  equal for names of one collective
    unspecific  bool   the name does not say which collective it is
    sized       bool   all ranks move the same amount
    """

    def __init__(self, job: Job) -> None:
        families = [
            "all_to_all" if name in ALL_TO_ALL else "message" if name in MESSAGES else name for name in job.names
        ]
        self.family = np.array([families.index(family) for family in families] + [0], np.int64)
        self.unspecific = name_mask(families, _UNSPECIFIC.__contains__)
        self.sized = name_mask(families, lambda name: name not in _UNSPECIFIC and name not in _MAY_DIFFER)
