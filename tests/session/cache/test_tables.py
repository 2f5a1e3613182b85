"""Answers are the same whether tables are derived or read from the cache, and damage costs only time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.payloads import ASKS, Ask, write_runs
from torch_tb_profiler.base import compiled
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache, tables
from torch_tb_profiler.model import operators
from torch_tb_profiler.model.schedule import compiled as schedule_compiled
from torch_tb_profiler.session import jobs, open_session
from torch_tb_profiler.session.cache import tables as kept
from torch_tb_profiler.session.native.job import job_functions
from torch_tb_profiler.session.native.schedule import load_schedule_functions
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views import all_tabs, find_view

SAMPLES = Path(__file__).parents[3] / "samples"
NAMES = ("transformer", "simulated_graph_replay")

Answers = list[tuple[Ask, bytes | str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_runs(folder)
    for name in NAMES:
        (folder / f"sample_{name}").symlink_to(SAMPLES / name, target_is_directory=True)
    return folder


@pytest.fixture(autouse=True)
def _small_traces_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MIN_EVENTS", 0)


def asked() -> list[Ask]:
    asks = [ask for ask in ASKS if isinstance(find_view(ask.slug), TraceView)]
    slugs = [tab.slug for tab in all_tabs() if isinstance(tab.view, TraceView)]
    return [*asks, *(Ask(slug, f"sample_{name}") for name in NAMES for slug in slugs)]


def settings(cache: Path | None) -> Settings:
    return replace(
        Settings.from_environment(),
        small_file_bytes=0,
        executor="serial",
        cache_dir=str(cache),
        cache_bytes=0 if cache is None else 1 << 30,
    )


FEW = [Ask(slug, "training") for slug in ("overview", "idle", "operators", "trace")]


def answers(runs: Path, cache: Path | None, asks: Sequence[Ask] = FEW) -> Answers:
    """Return every answer, or why there is none, built from what the cache has beside answers."""
    for answer in cache.glob("*.json") if cache is not None else ():
        if not answer.name.endswith(".summary.json"):
            answer.unlink(missing_ok=True)
    found: Answers = []
    with open_session(str(runs), settings(cache)) as session:
        for ask in asks:
            try:
                payload = session.view(ask.slug, ask.run, params=ask.params, wait=True).payload
            except NotFoundError as error:  # the recording has nothing to show there
                found.append((ask, str(error)))
            else:
                assert payload is not None, ask
                found.append((ask, payload))
    return found


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each table is written, as it is after it was derived."""
    counts: Counter[str] = Counter()
    write, write_all = Cache.save_table, Cache.save_tables

    def count(self: Cache, key: str, name: str, table: object) -> bool:
        counts[name] += 1
        return write(self, key, name, table)

    def count_all(self: Cache, key: str, tables: Mapping[str, object]) -> bool:
        counts.update([*tables])
        return write_all(self, key, tables)

    monkeypatch.setattr(Cache, "save_table", count)
    monkeypatch.setattr(Cache, "save_tables", count_all)
    return counts


@pytest.mark.slow
def test_answers_from_read_tables_are_those_from_derived_ones(
    runs: Path, tmp_path: Path, writes: Counter[str]
) -> None:
    derived = answers(runs, None, asked())
    assert answers(runs, tmp_path, asked()) == derived
    assert {
        "torch_tb_profiler.model.steps.steps",
        "torch_tb_profiler.model.schedule.items.device_items",
        "torch_tb_profiler.model.work.operator_work.operator_work",
        "torch_tb_profiler.analyses.schedule.causes.thread_states.0",
        "torch_tb_profiler.model.kernels.short_names.short_kernel_names",
    } <= writes.keys()
    writes.clear()
    assert answers(runs, tmp_path, asked()) == derived
    assert not writes  # all were read


def test_a_filter_by_phase_reads_the_phases_that_origins_derived(
    runs: Path, tmp_path: Path, writes: Counter[str]
) -> None:
    """Origins are prefetched when a trace is loaded, so that the filter doesn't wait for them."""
    phases = "torch_tb_profiler.model.phases.event_phases"
    answers(runs, tmp_path, [Ask("origins", "training")])
    assert writes[phases] == 1
    writes.clear()
    answers(runs, tmp_path, [Ask("operators", "training", {"phase": "backward"})])
    assert phases not in writes


def test_a_search_reads_the_tracks_and_lanes_that_the_timeline_derived(
    runs: Path, tmp_path: Path, writes: Counter[str]
) -> None:
    tables = {
        f"torch_tb_profiler.analyses.tracks.{name}" for name in ("lanes._build_lane_order.False", "tracks.tracks")
    }
    window = {"begin": "0", "end": "100000", "width": "64"}
    search = [Ask("trace/search", "training", {"query": "aten"})]
    derived = answers(runs, None, search)
    answers(runs, tmp_path, [Ask("trace/tile", "training", window)])
    assert tables <= writes.keys()
    writes.clear()
    assert answers(runs, tmp_path, search) == derived
    assert not tables & writes.keys()


def test_unfolded_frames_are_counted_once(runs: Path, tmp_path: Path, writes: Counter[str]) -> None:
    unfolded = [Ask("trace", "training", {"python": "true"})]
    derived = answers(runs, None, unfolded)
    assert answers(runs, tmp_path, unfolded) == derived
    assert writes["torch_tb_profiler.analyses.tracks.lanes.count_lanes.True"] == 1
    writes.clear()
    assert answers(runs, tmp_path, unfolded) == derived
    assert not writes


def test_what_a_user_types_is_part_of_no_file_s_name(runs: Path, tmp_path: Path, writes: Counter[str]) -> None:
    answers(runs, tmp_path, [Ask("roofline", "training", {"peaks": "bf16=989,hbm=3352"})])
    assert writes
    assert not [name for name in writes if "=" in name]


def test_damaged_tables_and_those_of_another_type_are_derived_again(
    runs: Path, tmp_path: Path, writes: Counter[str], caplog: pytest.LogCaptureFixture
) -> None:
    derived = answers(runs, None)
    answers(runs, tmp_path)
    files = sorted(tmp_path.glob("*.table"))
    other = files[0].read_bytes()
    for number, file in enumerate(files):
        content = bytearray(file.read_bytes())
        content[number * 7919 % len(content)] ^= 1
        file.write_bytes(content if number % 2 else other)
    writes.clear()
    assert answers(runs, tmp_path) == derived
    assert caplog.text.count("is damaged") == writes.total() > len(files) / 2


def test_damaged_tables_in_one_file_are_derived_again(
    runs: Path, tmp_path: Path, writes: Counter[str], caplog: pytest.LogCaptureFixture
) -> None:
    derived = answers(runs, tmp_path)
    (file,) = tmp_path.glob("*.tables")
    written = {*writes}
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    file.write_bytes(content)
    writes.clear()
    assert answers(runs, tmp_path) == derived
    assert caplog.text.count("is damaged") == 1
    assert {"torch_tb_profiler.model.steps.steps", "torch_tb_profiler.model.kinds.event_kinds"} <= writes.keys()
    assert writes.keys() <= written
    writes.clear()
    assert answers(runs, tmp_path) == derived
    assert not writes and not file.exists()


def test_a_full_disk_costs_only_time(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(table: object, sink: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tables, "write_table", write)
    assert answers(runs, tmp_path) == answers(runs, None)
    assert not list(tmp_path.glob("*.table*"))


def test_two_processes_may_write_at_once(runs: Path, tmp_path: Path) -> None:
    derived = answers(runs, tmp_path)
    for table in tmp_path.glob("*.table*"):
        table.unlink()
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: answers(runs, tmp_path), range(2)))
    assert both == [derived, derived]


def test_tabs_that_are_prepared_in_turn_leave_only_the_columns_in_memory(runs: Path, tmp_path: Path) -> None:
    derived = answers(runs, None)
    answers(runs, tmp_path, FEW[:1])
    with open_session(str(runs), settings(tmp_path)) as session:
        session.build_answers("training", None, None)
        assert [dict(trace._memo) for trace in jobs._open.values()] == [{}]
        found = [session.view(ask.slug, ask.run, params=ask.params, wait=True).payload for ask in FEW]
    assert [(ask, payload) for ask, payload in zip(FEW, found, strict=True)] == derived


def test_operator_times_are_kept_by_what_prepares_tabs_not_by_who_asks_once(
    runs: Path, tmp_path: Path, writes: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = "torch_tb_profiler.model.operators.operators"
    filters = [
        Ask("operators", "training", {"group_by": "shape"}),
        Ask("kernels", "training", {"group_by": "launch"}),
    ]
    derived = answers(runs, None, filters)
    assert answers(runs, tmp_path, filters) == derived and times not in writes
    with open_session(str(runs), settings(tmp_path)) as session:
        session.build_answers("training", None, None)
    assert writes[times] == 1
    monkeypatch.setattr(operators, "_merge_targets", lambda *_: pytest.fail("the times were derived again"))
    assert answers(runs, tmp_path, filters) == derived


def prefetch_as_servers_do(runs: Path, cache: Path, run: str) -> None:
    with open_session(str(runs), settings(cache)) as session:
        file = session.find(run, None, None).file
        summary = session._files.cached_summary(file.id)
    assert summary is not None
    request = jobs.LoadRequest(str(runs), file.path, file.size, file.id, 0)
    for slug in jobs.prefetched_views(summary.unavailable.keys()):
        jobs.prefetch_answers(request, None, slug, str(cache), 1 << 30)


@pytest.mark.parametrize(
    ("slug", "run", "params", "table"),
    [
        (
            "operators",
            "sample_transformer",
            {"group_by": "annotation", "phase": "backward"},
            "torch_tb_profiler.analyses.operators.annotation_around",
        ),
        (
            "operators",
            "sample_transformer",
            {"group_by": "module", "phase": "backward"},
            "torch_tb_profiler.model.module_calls._attribute_to_calls",
        ),
        ("critical_path/pieces", "training", {}, "torch_tb_profiler.analyses.schedule.path.path_segments"),
        (
            "kernels",
            "training",
            {"origin": "unknown"},
            "torch_tb_profiler.model.origins.origins._stored_origins",
        ),
        (
            "trace/search",
            "modules",
            {"query": "module:Linear"},
            "torch_tb_profiler.model.origins.origins._stored_origins",
        ),
        ("idle/flame", "training", {}, "torch_tb_profiler.analyses.schedule.segments.idle_segments.0.None"),
    ],
)
def test_what_several_filters_need_is_kept_for_them(
    runs: Path, tmp_path: Path, writes: Counter[str], slug: str, run: str, params: dict[str, str], table: str
) -> None:
    asked = [Ask(slug, run, params)]
    derived = answers(runs, None, asked)
    assert answers(runs, tmp_path, asked) == derived and table not in writes
    prefetch_as_servers_do(runs, tmp_path, run)
    assert writes[table] == 1
    assert answers(runs, tmp_path, asked) == derived


@pytest.mark.parametrize(
    ("slug", "params", "table"),
    [
        (
            "trace/selection",
            {"begin": "0", "end": "100000", "python": "true"},
            "torch_tb_profiler.analyses.tracks.lanes._build_lane_order.True",
        ),
        (
            "critical_path",
            {"what_if": "operator:aten::linear:50"},
            "torch_tb_profiler.views.critical_path.build._build_targets",
        ),
    ],
)
def test_what_a_filter_of_a_tab_needs_is_derived_with_the_tab(
    runs: Path, tmp_path: Path, writes: Counter[str], slug: str, params: dict[str, str], table: str
) -> None:
    run = "sample_transformer"
    asked = [Ask(slug, run, params)]
    derived = answers(runs, None, asked)
    answers(runs, tmp_path, [Ask("overview", run)])
    prefetch_as_servers_do(runs, tmp_path, run)
    assert writes[table] == 1
    writes.clear()
    assert answers(runs, tmp_path, asked) == derived
    assert not writes


@pytest.mark.parametrize("large", [True, False])
def test_functions_in_c_answer_what_is_asked_of_large_traces_in_any_process(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    monkeypatch.setattr(compiled, "_functions", None)
    monkeypatch.setattr(schedule_compiled, "_functions", None)
    monkeypatch.setattr(kept, "MIN_EVENTS", 0 if large else 10_000_000)
    answers(runs, tmp_path)
    compiled.use_column_functions(None)  # reading a file enables them only in workers
    schedule_compiled.use_schedule_functions(None)
    answers(runs, tmp_path)
    used = compiled.column_functions(1_000_000) is not None, schedule_compiled.schedule_functions() is not None
    built = job_functions(anywhere=True) is not None, load_schedule_functions(anywhere=True) is not None
    assert used == (built if large else (False, False))


def test_small_traces_keep_no_tables(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MIN_EVENTS", 10_000_000)
    answers(runs, tmp_path)
    assert not list(tmp_path.glob("*.table*"))
