"""Hooks and modules that Lightning's profiler marked."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.model.lightning import has_lightning_marks, lightning_hooks, lightning_modules


@pytest.mark.parametrize(
    ("mark", "marked"),
    [
        ("[pl][profile]run_training_batch", True),
        ("[pl][module]torch.nn.Linear:~layer", True),
        ("[pl]other", False),
    ],
)
def test_one_mark_is_enough(mark: str, marked: bool) -> None:
    assert has_lightning_marks(draw(f"host user_annotation {mark} 0 10")) == marked
    assert not has_lightning_marks(
        draw(f"gpu0 gpu_user_annotation {mark} 0 10 stream=7")
    )  # its copy on the device


def test_events_outside_of_hooks_belong_to_none() -> None:
    """Also where the last event of the file belongs to one."""
    trace = draw("""
    host  cpu_op           before                                   0  10
    host  cpu_op           inside                                  25  10
    host  user_annotation  [pl][profile][Strategy]Single.step      20  50
    """)
    hooks = lightning_hooks(trace)
    assert hooks.code.tolist() == [-1, 0, 0]
    assert (hooks.names, hooks.classes) == (("Single.step",), ("Strategy",))


def test_modules_are_named_by_their_dotted_path() -> None:
    """A list is never called, so it has no mark: what is in it goes to the module around."""
    trace = draw("""
    host  user_annotation  [pl][module]Net:~net                0  100
    host  user_annotation  [pl][module]Linear:~net.layers.0   10   40
    host  cpu_op           aten::mm                           20   10
    """)
    found = lightning_modules(trace)
    code = int(found.code[np.flatnonzero(trace.events.name == list(trace.strings).index("aten::mm"))[0]])
    assert found.path(code) == ("net", "net.layers.0")
    assert found.classes[code] == "Linear"
