"""Views over all workers of a run and over two traces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.producers import ascend, gaudi
from tests.support.traces import document
from tests.support.views import add_tab
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.errors import NotFoundError, UndecidedError, UsageError
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache.cache import append_checksum
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session import Root, Session
from torch_tb_profiler.session.cache.packed import pack
from torch_tb_profiler.session.loading import Loader
from torch_tb_profiler.view import Members, NoParams, PairView, RankView, Reduction, RunView, Tab, TraceView


@dataclass(frozen=True)
class Count:
    events: int


@dataclass(frozen=True)
class Counts:
    events: dict[str, int | None]
    reasons: dict[str, str | None]
    total: int


@dataclass(frozen=True)
class Difference:
    events: int


added: list[Members[Count]] = []


@derived
def total(members: Members[Count]) -> int:
    added.append(members)
    return sum(member.result.events for member in members if member.result)


def count_all(members: Members[Count], params: NoParams) -> Counts:
    return Counts(
        {member.worker: member.result.events if member.result else None for member in members},
        {member.worker: member.reason for member in members},
        total(members),
    )


def needs_events(trace: Trace) -> str | None:
    return "a single event is not worth it" if len(trace) < 2 else None


COUNTS = Reduction("counts", Count, lambda trace: Count(len(trace)))
RUN = RunView("counts", "Counts", NoParams, Counts, count_all, COUNTS)
PART = RunView("counts/part", "Counts again", NoParams, Counts, count_all, COUNTS)
ALONE = TraceView("mine", "Mine", NoParams, Count, lambda trace, params: Count(len(trace)))
BESIDE = RankView(
    "mine/of",
    "Mine of all that are read",
    NoParams,
    Count,
    lambda alone, worker, members, params: Count(1000 * alone.events + total(members)),
    ALONE,
    COUNTS,
    3,
)
PAIR = PairView(
    "difference",
    "Difference",
    NoParams,
    Difference,
    lambda pair, params: Difference(sum(map(len, pair.candidate)) - sum(map(len, pair.base))),
)


@pytest.fixture(autouse=True)
def views(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for tab in (
        Tab("Resources", RUN, needs_events, (PART,)),
        Tab("", ALONE, parts=(BESIDE,)),
        Tab("Compare", PAIR),
    ):
        add_tab(monkeypatch, tab)
    added.clear()
    yield


def write(path: Path, count: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(
        document(
            [
                {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": i * 10, "dur": 5}
                for i in range(count)
            ]
        )
    )


def ask(session: Session, slug: str, **given: Any) -> Any:
    answer = session.view(slug, wait=True, timeout=PATIENCE, **given)
    assert answer.payload is not None, answer.state
    return json.loads(answer.payload)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    for rank, count in enumerate((10, 20, 1)):
        write(tmp_path / "job" / f"rank{rank}.1.pt.trace.json", count)
    write(tmp_path / "job" / "rank0.2.pt.trace.json", 7)
    (tmp_path / "job" / "rank3.1.pt.trace.json").write_bytes(b"")
    write(tmp_path / "old" / "rank0.1.pt.trace.json", 4)
    settings = replace(Settings.from_environment(), cache_dir=str(tmp_path / "cache"), small_file_bytes=1 << 20)
    with Session([Root(str(tmp_path))], settings) as session:
        session.scan()
        yield session


def test_a_view_of_a_run_sees_every_worker_and_why_one_has_no_result(session: Session) -> None:
    payload = ask(session, "counts", run="job")
    assert payload["events"] == {"rank0": 10, "rank1": 20, "rank2": None, "rank3": None}
    assert payload["reasons"] == {
        "rank0": None,
        "rank1": None,
        "rank2": "a single event is not worth it",
        "rank3": "the file is empty",
    }
    assert payload["total"] == 30


def test_what_is_derived_from_all_members_is_computed_once_and_shared_with_parts(session: Session) -> None:
    ask(session, "counts", run="job")
    ask(session, "counts/part", run="job")
    assert len(added) == 1
    ask(session, "counts", run="old")
    assert len(added) == 2


def test_the_workers_that_are_ready_are_shown_while_others_load(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session.catalog.run("job")
    ready = {}
    for worker in run.workers[:2]:
        key = session.load(worker.spans[0])
        session.wait(key, PATIENCE)
        ready[worker.name] = key
    monkeypatch.setattr(Loader, "load", lambda *_, **__: Future())
    answer = session.view("counts", run="job")
    assert answer.payload is not None
    assert json.loads(answer.payload)["events"] == {"rank0": 10, "rank1": 20, "rank2": None, "rank3": None}
    assert (answer.loading, answer.state.state) == (2, "ready")
    waited = session.view("counts", run="job", wait=True, timeout=0.01)
    assert (waited.payload, waited.state.state) == (None, "loading")


def test_in_a_large_run_only_ranks_that_are_loaded_count(session: Session) -> None:
    """Four workers are more than the view loads by itself; a request that waits gets the complete answer."""
    workers = session.catalog.run("job").workers
    session.wait(session.load(workers[1].spans[0]), PATIENCE)
    answer = session.view("mine/of", run="job", worker="rank1")
    assert (answer.state.state, answer.loading, answer.payload) == ("ready", 0, b'{"events":20020}')
    session.view("mine/of", run="job", worker="rank0")  # asks for its own file
    session.wait(workers[0].spans[0].file.id, PATIENCE)
    answer = session.view("mine/of", run="job", worker="rank0")
    assert (answer.state.state, answer.loading, answer.payload) == ("ready", 0, b'{"events":10030}')
    unread = [session.state(worker.spans[0]).state for worker in workers[2:]]
    assert unread == ["waiting", "waiting"]
    assert ask(session, "mine/of", run="job", worker="rank0") == {"events": 10_030}
    assert [session.state(worker.spans[0]).state for worker in workers[2:]] == ["ready", "failed"]


def test_a_worker_without_the_span_is_named_and_an_unknown_span_refused(session: Session) -> None:
    payload = ask(session, "counts", run="job", span="2")
    assert payload["events"]["rank0"] == 7
    assert payload["reasons"]["rank1"] == "this worker has no span 2"
    with pytest.raises(NotFoundError, match="there is no span '9'"):
        ask(session, "counts", run="job", span="9")


def test_a_run_without_anything_to_show_says_why(tmp_path: Path) -> None:
    write(tmp_path / "rank0.1.pt.trace.json", 1)
    with Session([Root(str(tmp_path))], Settings.from_environment()) as session:
        session.scan()
        with pytest.raises(NotFoundError, match="not worth it"):
            ask(session, "counts")


@pytest.mark.parametrize("cached", [None, pack({"other": 1})], ids=["lost", "of another shape"])
def test_a_reduction_missing_in_the_cache_is_computed_again(tmp_path: Path, cached: bytes | None) -> None:
    write(tmp_path / "rank0.1.pt.trace.json", 300)
    folder = tmp_path / "cache"
    settings = replace(Settings.from_environment(), cache_dir=str(folder), small_file_bytes=100_000)

    def counted() -> int:
        with Session([Root(str(tmp_path))], settings) as session:
            session.scan()
            total: int = ask(session, "counts")["total"]
            return total

    assert counted() == 300
    (result,) = folder.glob("*.counts-reduced.bin")
    if cached is None:
        result.unlink()
    else:
        result.write_bytes(append_checksum(cached, result.name))
    assert counted() == 300


def test_a_pair_compares_with_the_named_base_or_the_only_other_run(session: Session) -> None:
    answer = session.view("difference", run="job", wait=True, timeout=PATIENCE)
    assert answer.payload is not None
    assert json.loads(answer.payload) == {"events": 10 - 4}
    assert answer.base == ("old", "rank0", "1")
    named = {"base_run": "job", "base_worker": "rank1"}
    assert ask(session, "difference", run="job", params=named) == {"events": 10 - 20}


def test_a_side_of_several_recordings(session: Session) -> None:
    named = {"base_run": "old", "base_also": '[["job", "rank1", null]]'}
    assert ask(session, "difference", run="job", params=named) == {"events": 10 - 4 - 20}
    for wrong in ("job", '[["job"]]', '[["old", "rank0", null]]'):
        with pytest.raises(UsageError, match="base_also"):
            ask(session, "difference", run="job", params={**named, "base_also": wrong})
    with pytest.raises(NotFoundError, match="nothing"):
        ask(session, "difference", run="job", params={**named, "also": '[["nothing", null, null]]'})


def test_a_pair_within_the_only_run_and_nothing_to_compare_with(tmp_path: Path) -> None:
    write(tmp_path / "w.1.pt.trace.json", 5)
    with Session([Root(str(tmp_path))], Settings.from_environment()) as session:
        session.scan()
        with pytest.raises(NotFoundError, match="there is only one trace"):
            session.view("difference")
        write(tmp_path / "w.2.pt.trace.json", 8)
        session.scan()
        assert ask(session, "difference") == {"events": -3}


def test_a_pair_compares_with_the_previous_span(tmp_path: Path) -> None:
    """Of a first span: with the same worker of the other run, the first worker where there is no such."""
    for run, counts in (("a", (5, 6)), ("b", (7, 8, 9))):
        for number, count in enumerate(counts, 1):
            write(tmp_path / run / f"rank0.{number}.pt.trace.json", count)
            write(tmp_path / run / f"rank1.{number}.pt.trace.json", count + 10)
    write(tmp_path / "b" / "rank2.1.pt.trace.json", 2)
    with Session([Root(str(tmp_path))], Settings.from_environment()) as session:
        session.scan()

        def base(worker: str, span: str) -> tuple[str, ...] | None:
            answer = session.view("difference", run="b", worker=worker, span=span, wait=True, timeout=PATIENCE)
            return answer.base and tuple(answer.base)

        assert base("rank1", "2") == ("b", "rank1", "1")
        assert base("rank1", "1") == ("a", "rank1", "1")
        assert base("rank1", "3") == ("b", "rank1", "2")
        assert base("rank2", "1") == ("a", "rank0", "1")


def write_named(path: Path, names: str, device: str = "A100") -> None:
    path.parent.mkdir(exist_ok=True)
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5}
        for i, name in enumerate(names.split())
    ]
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 5}
    events.append({**kernel, "args": {"device": 0, "stream": 7}})
    path.write_bytes(document(events, deviceProperties=[{"id": 0, "name": device}]))


@pytest.mark.parametrize(
    ("runs", "base"),
    [
        ({"a": "conv relu pool", "b": "mm softmax add norm", "c": "mm softmax norm"}, "b"),
        ({"a": "conv relu pool", "c": "mm softmax norm"}, "c"),  # three of four names
        ({"a": "conv relu mm add", "c": "conv mm relu pool norm"}, None),  # of seven names two
        ({"a": "mm softmax add norm", "b": "mm softmax add norm", "h100": "mm softmax add norm"}, "h100"),
        ({"a": "conv relu pool"}, None),
    ],
)
def test_a_run_is_compared_with_the_most_similar_one_or_with_none(
    tmp_path: Path, runs: dict[str, str], base: str | None
) -> None:
    for run, names in {**runs, "new": "mm softmax add norm"}.items():
        write_named(tmp_path / run / "w.pt.trace.json", names, "H100" if run in ("h100", "new") else "A100")
    with Session([Root(str(tmp_path))], Settings.from_environment()) as session:
        session.scan()
        for each in session.catalog.runs:
            session.wait(session.load(each.workers[0].spans[0]), PATIENCE)
        if base is None:
            with pytest.raises(UndecidedError, match="no other run has similar operators: choose the run"):
                session.view("difference", run="new", wait=True, timeout=PATIENCE)
            assert ask(session, "difference", run="new", params={"base_run": "a"})
        else:
            answer = session.view("difference", run="new", wait=True, timeout=PATIENCE)
            assert answer.base is not None and answer.base[0] == base


def write_accelerator_run(folder: Path, kind: str) -> None:
    """Write a run of Gaudi or Ascend; both record the same operators, which PyTorch names alike on all devices."""
    recorded = json.loads(gaudi.content()) if kind == "gaudi" else {"traceEvents": ascend.events()}
    thread = next(each for each in recorded["traceEvents"] if each["ph"] == "X")
    same = [{**thread, "cat": "cpu_op", "name": f"aten::op_{i}", "args": {}} for i in range(40)]
    folder.mkdir()
    (folder / "w.pt.trace.json").write_text(
        json.dumps({**recorded, "traceEvents": [*recorded["traceEvents"], *same]})
    )


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize(("kind", "other"), [("gaudi", "ascend"), ("ascend", "gaudi")])
@pytest.mark.parametrize("base", [None, "run1", "run0"])
def test_no_run_of_ascend_is_offered_for_one_of_gaudi_nor_the_other_way_around(
    tmp_path: Path, kind: str, other: str, base: str | None, loaded: bool
) -> None:
    """The only other run is taken before it is read; read then, it is refused all the same."""
    others = {None: [other], "run1": [other, kind], "run0": [kind]}[base]
    for number, each_kind in enumerate(others):
        write_accelerator_run(tmp_path / f"run{number}", each_kind)
    write_accelerator_run(tmp_path / "new", kind)
    with Session([Root(str(tmp_path))], Settings.from_environment()) as session:
        session.scan()
        for each in session.catalog.runs if loaded or len(others) > 1 else ():
            session.wait(session.load(each.workers[0].spans[0]), PATIENCE)
        if base is None:
            with pytest.raises(UndecidedError, match="no other run has similar operators"):
                session.view("difference", run="new", wait=True, timeout=PATIENCE)
        else:
            answer = session.view("difference", run="new", wait=True, timeout=PATIENCE)
            assert answer.base is not None and answer.base[0] == base


def test_none_of_several_runs_is_chosen_if_none_was_loaded(tmp_path: Path) -> None:
    """Loading them all only to choose one could take minutes."""
    for run in ("a", "b", "new"):
        write_named(tmp_path / run / "w.pt.trace.json", "mm add")
    with Session([Root(str(tmp_path))], Settings.from_environment()) as session:
        session.scan()
        with pytest.raises(UndecidedError, match="none of the runs read so far"):
            session.view("difference", run="new", wait=True, timeout=PATIENCE)
        session.wait(session.load(session.catalog.run("b").workers[0].spans[0]), PATIENCE)
        answer = session.view("difference", run="new", wait=True, timeout=PATIENCE)
        assert answer.base is not None and answer.base[0] == "b"


def write_merged(path: Path, ranks: tuple[int, ...]) -> None:
    """Write host and device work of each rank under its own process ID."""
    path.parent.mkdir(exist_ok=True)
    events = [
        {"ph": "X", "cat": cat, "name": cat, "pid": rank, "tid": tid, "ts": 0, "dur": 5}
        for rank in ranks
        for tid, cat in enumerate(("cpu_op", "kernel"))
    ]
    path.write_bytes(document(events))


def test_the_first_span_of_a_rank_is_compared_with_the_same_span_elsewhere(tmp_path: Path) -> None:
    """Where files hold several ranks, a rank may be missing from the first ones of its run."""
    for path, ranks in (("a/w.1", (0, 1)), ("a/w.2", (0, 1)), ("b/w.1", (0, 2)), ("b/w.2", (0, 1))):
        write_merged(tmp_path / f"{path}.pt.trace.json", ranks)
    with Session([Root(str(tmp_path))], Settings.from_environment()) as session:
        session.scan()
        for run in session.catalog.runs:
            for span in run.workers[0].spans:
                session.wait(session.load(span), PATIENCE)
        answer = session.view("difference", run="b", worker="w/rank1", span="2", wait=True, timeout=PATIENCE)
        assert answer.base == ("a", "w/rank1", "2")
        assert session.find("b", "w/rank1", None).span.name == "2"
