from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.lightning.build import build

NESTED = """
    host  user_annotation  [pl][profile]run                 0  100
    host  user_annotation  [pl][profile][L]L.training_step 10   75
    host  cpu_op           aten::mm                        20   10
"""


def test_the_hook_with_the_most_time_outside_of_nested_hooks() -> None:
    payload = build(draw(NESTED), NoParams())
    assert plain(payload.headline) == "L.training_step takes 75% of the time in hooks."
    (link,) = (phrase.link for phrase in payload.headline if phrase.link is not None)
    assert link == "lightning?show=hooks&q=L.training_step"
    assert plain(payload.details) == (
        "2 hooks ran 100 µs on the host; time inside a nested hook counts for that one only."
    )


def test_hooks_that_took_no_time() -> None:
    payload = build(draw("host user_annotation [pl][profile]run 0 0"), NoParams())
    assert plain(payload.headline) == "No time was recorded in hooks."
    assert plain(payload.details).startswith("1 hook ran 0 ns")


def test_without_hooks_the_headline_is_about_the_modules() -> None:
    payload = build(draw("host user_annotation [pl][module]torch.nn.ReLU:~act 0 10"), NoParams())
    assert plain(payload.headline) == "ReLU is the top module: 100% of the host time of all modules."
    assert payload.headline[0].link == "lightning?place=0"
    assert payload.details == ()
