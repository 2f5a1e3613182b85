"""The first page of the overview: what it says stays true once the schedule is replayed."""

from __future__ import annotations

from msgspec.structs import asdict

from tests.analyses.overview.advice_traces import steps, work
from tests.support.page import draw_training, products
from tests.support.traces import draw, read_bytes
from tests.views.test_truncated import WHOLE
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import first_sentence, plain
from torch_tb_profiler.views.overview.build import build, build_preview

LATE = {
    "preview",
    "headline",
    "spent",
    "explanation",
    "hardware",
    "gains",
    "recommendations",
    "no_advice",
    "reasons",
}


def deriving_modules(trace: Trace) -> set[str]:
    """Return the modules that derived something from a trace so far."""
    return {key[0].rpartition(".")[0] for key in trace._memo if isinstance(key, tuple)}


def test_the_first_page_replays_no_schedule_and_models_no_work() -> None:
    trace = read_bytes(draw_training(3))
    late = {f"torch_tb_profiler.model.{name}" for name in ("schedule.schedule", "work.operator_work")}
    assert build_preview(trace, NoParams()).preview and not late & deriving_modules(trace)
    assert not build(trace, NoParams()).preview and late <= deriving_modules(trace)


def test_what_the_first_page_says_stays() -> None:
    for content in (draw_training(3), products()):
        first, whole = (view(read_bytes(content), NoParams()) for view in (build_preview, build))
        assert {name for name, value in asdict(first).items() if value != getattr(whole, name)} <= LATE
        assert plain(whole.spent).startswith(plain(first.spent)) and first.headline == first_sentence(first.spent)
        assert plain(whole.explanation).startswith(plain(first.explanation))


def test_its_advice_has_what_was_measured() -> None:
    loading = "host user_annotation enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 0 4000"
    trace = draw(f"{steps(1)}\n{loading}\n{work(4_110, 5_000, 4_100, 1)}")
    first, whole = (view(trace, NoParams()) for view in (build_preview, build))
    assert [(each.id, each.basis) for each in first.recommendations] == [("data_loading", "share")]
    assert [(each.id, each.basis) for each in whole.recommendations] == [("data_loading", "what_if")]
    assert (first.gains, first.no_advice) == ((), ())


def test_it_does_not_say_that_nothing_is_to_gain_before_that_is_known() -> None:
    first, whole = (view(read_bytes(products()), NoParams()) for view in (build_preview, build))
    assert first.recommendations == [] and first.no_advice == () and whole.no_advice
    captured = draw("host cuda_runtime cudaStreamBeginCapture 0 5\ngpu0 kernel gemm 10 1000 stream=7")
    assert "captures graphs" in plain(build_preview(captured, NoParams()).no_advice)


def test_where_the_use_of_the_peak_cannot_be_known_the_first_page_says_so() -> None:
    assert "record_shapes=True" in plain(
        build_preview(read_bytes(draw_training(3)), NoParams()).reasons["hardware"]
    )
    assert "hardware" not in build_preview(read_bytes(products()), NoParams()).reasons


def test_without_devices_or_their_end_the_first_page_is_the_whole() -> None:
    for trace in (draw("host cpu_op aten::mm 0 10"), read_bytes(WHOLE[:-25])):
        assert build_preview(trace, NoParams()) == build(trace, NoParams())
        assert not build_preview(trace, NoParams()).preview
