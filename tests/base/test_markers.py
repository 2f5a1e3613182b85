"""One name means the same everywhere."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.diff.logical_tree import logical_tree
from torch_tb_profiler.analyses.diff.roles import PartRole
from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.base.markers import is_data_loading, is_optimizer, is_step, is_training_mark, step_number
from torch_tb_profiler.model.operators import operators
from torch_tb_profiler.model.phases import PHASES, event_phases

LOADERS = ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "enumerate(DataPipe)#Mapper")
OPTIMIZERS = ("Optimizer.step#SGD.step", "Optimizer.zero_grad#Adam.zero_grad")
PLAIN = (
    "aten::mm",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__init__",
    "enumerate(Other)#x.__next__",
    "Optimizer.load",
    "MyOptimizer.step#SGD.step",
    "DataParallel.backward",
)


@pytest.mark.parametrize("name", [*LOADERS, *OPTIMIZERS, *PLAIN, "ProfilerStep#12"])
def test_names_are_recognized(name: str) -> None:
    assert is_data_loading(name) == (name in LOADERS)
    assert is_optimizer(name) == (name in OPTIMIZERS)
    assert is_step(name) == (name == "ProfilerStep#12")
    assert is_training_mark(name) == (name not in PLAIN)


def test_step_number_strips_the_prefix() -> None:
    assert step_number("ProfilerStep#12") == "12"


@pytest.mark.parametrize("category", ["cpu_op", "user_annotation"])
@pytest.mark.parametrize("name", [*LOADERS, *OPTIMIZERS, *PLAIN])
def test_phases_categories_operators_and_the_diff_agree(name: str, category: str) -> None:
    trace = draw(f"host {category} {name} 0 10")
    phase = PHASES[int(event_phases(trace)[0])]
    assert phase == ("data" if name in LOADERS else "optimizer" if name in OPTIMIZERS else "forward")
    assert (len(role_intervals(trace)["dataloader"].starts) > 0) == (name in LOADERS)
    assert (len(operators(trace).rows) > 0) == (name in PLAIN and category == "cpu_op")
    role = PartRole(int(logical_tree(trace).role[0]))
    expected = {"data": PartRole.DATALOADER, "optimizer": PartRole.OPTIMIZER}.get(phase)
    assert role == (expected or (PartRole.OPERATOR if category == "cpu_op" else PartRole.ANNOTATION))
