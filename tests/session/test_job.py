"""A job with one broken and one missing rank, and a job of a thousand ranks."""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs import CULPRIT, Job, ddp
from tests.support.simulation.cached_jobs import cache_job
from torch_tb_profiler.analyses.distributed.compiled import replay_functions, use_replay_functions
from torch_tb_profiler.base.compiled import column_functions, use_column_functions
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.cache.cache import append_checksum
from torch_tb_profiler.ingest.compiled import ABSENT
from torch_tb_profiler.session import open_session
from torch_tb_profiler.session.answers.run import RunAnswers
from torch_tb_profiler.session.native.job import LIBRARY, job_functions


def write(folder: Path, documents: dict[int, bytes]) -> None:
    folder.mkdir(parents=True)
    for rank, content in documents.items():
        (folder / f"node{rank // 2}_{rank}.1700000000000.pt.trace.json").write_bytes(content)


def ask(session: Any, slug: str, **params: str) -> dict[str, Any]:
    answer = session.view(slug, run="job", params=params, wait=True)
    assert answer.payload is not None, answer.state
    payload: dict[str, Any] = json.loads(answer.payload)
    return payload


def plain_text(text: list[dict[str, str]]) -> str:
    return "".join(phrase["text"] for phrase in text)


def test_the_ranks_that_can_be_read_are_compared(tmp_path: Path) -> None:
    documents = Job(6, ddp(6), straggler=2).documents(only=[0, 1, 2, 3, 5])
    documents[3] = b'{"traceEvents": "none"}'
    write(tmp_path / "job", documents)
    with open_session(str(tmp_path)) as session:
        payload = ask(session, "distributed")
        page = ask(session, "distributed/collectives", sort="skew", descending="1", limit="2")
        one = ask(session, "distributed/collective", collective=str(page["rows"][0]["id"]))
        workers = [rank["worker"] for rank in payload["ranks"] if rank["rank"] in (0, 1, 2)]
        joined = ask(session, "distributed/connections", workers=",".join(workers))
    assert [(problem["kind"], problem["rank"]) for problem in payload["problems"]] == [
        ("broken_rank", None),
        ("missing_rank", None),
    ]
    assert (
        "The traces of ranks 3, 4 are missing (2 of 6 ranks); waiting for them counts as transfer"
        == plain_text(payload["problems"][1]["text"])
    )
    assert payload["verdict"]["rank"] == 2 and CULPRIT in plain_text(payload["explanation"])
    assert [rank["state"] for rank in payload["ranks"]].count("failed") == 1
    assert page["total"] == 9 and {row["late_rank"] for row in page["rows"]} == {2}
    assert [part["rank"] for part in one["participants"]] == [0, 1, 2, 5]
    assert [rank["rank"] for rank in joined["ranks"]] == [0, 1, 2] and joined["total"] == 9
    assert all(row["lower_bound"] for row in payload["collectives"])


def test_a_single_rank_of_a_job_shows_the_view(tmp_path: Path) -> None:
    write(tmp_path / "job", Job(6, ddp(6)).documents(only=[4]))
    with open_session(str(tmp_path)) as session:
        payload = ask(session, "distributed")
    assert payload["verdict"]["kind"] == "unknown"
    assert [row["transfer_ns"] for row in payload["collectives"]] == [None]
    assert payload["reasons"]["transfer_ns"]


@pytest.mark.parametrize(("switch", "in_c"), [("", True), ("0", False)])
def test_servers_compare_large_jobs_in_c_unless_it_is_turned_off(
    switch: str, in_c: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_PROFILER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TORCH_PROFILER_NATIVE", raising=False)
    if switch:
        monkeypatch.setenv("TORCH_PROFILER_NATIVE", switch)
    if job_functions(anywhere=True) is None and in_c:
        pytest.skip(f"{LIBRARY.file_name} is {ABSENT}")
    cache_job(tmp_path / "log" / "job", Cache(str(tmp_path / "cache"), 2**30), 64)
    try:
        with open_session(str(tmp_path / "log")) as session:
            assert ask(session, "distributed")["verdict"]["kind"] == "straggler"
        assert (replay_functions() is not None, column_functions(1 << 20) is not None) == (in_c, in_c)
    finally:
        use_column_functions(None)
        use_replay_functions(None)


@pytest.mark.slow
def test_a_thousand_ranks_are_answered_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer grows with the ranks: a page of a table, the map, the first page."""
    monkeypatch.setenv("TORCH_PROFILER_CACHE_DIR", str(tmp_path / "cache"))
    cache_job(tmp_path / "log" / "job", Cache(str(tmp_path / "cache"), 2**30), 1000)
    page = {"first": "900", "limit": "50"}
    with open_session(str(tmp_path / "log")) as session:
        payload = ask(session, "distributed")
        tables = [
            ask(session, f"distributed/{part}", **page) for part in ("ranks", "steps", "operations", "groups")
        ]
        shown = ask(session, "distributed/map")
    assert plain_text(payload["headline"]).startswith("Rank 5 is a straggler")
    assert payload["rank_count"] == payload["read_count"] == 1000 and len(payload["stragglers"]) == 100
    assert [table["total"] for table in tables] == [1000, 3000, 2000, 133]
    assert len(shown["columns"]) == 256 and sum(column["ranks"] for column in shown["columns"]) == 1000
    assert all(len(json.dumps(answer)) < 150_000 for answer in (payload, shown, *tables))


def test_answers_about_a_large_job_are_kept_between_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are built again once a member has changed, for other parameters, and where one was damaged."""
    monkeypatch.setenv("TORCH_PROFILER_CACHE_DIR", str(tmp_path / "cache"))
    cache = Cache(str(tmp_path / "cache"), 2**30)
    cache_job(tmp_path / "log" / "job", cache, 64)
    built: list[str] = []
    build = RunAnswers._build

    def count(self: RunAnswers, view: Any, *rest: Any) -> Any:
        built.append(view.slug)
        return build(self, view, *rest)

    monkeypatch.setattr(RunAnswers, "_build", count)

    def answers() -> list[dict[str, Any]]:
        with open_session(str(tmp_path / "log")) as session:
            pages = [ask(session, "distributed/ranks", first=first, limit="2") for first in ("0", "2")]
            return [ask(session, "distributed"), *pages]

    first = answers()
    assert len(built) == 3
    assert answers() == first and len(built) == 3
    (kept,) = (tmp_path / "cache").glob("*.distributed.json")
    kept.write_bytes(kept.read_bytes()[:-9])
    assert answers() == first and len(built) == 4
    worker = sorted((tmp_path / "log" / "job").iterdir())[-1]
    worker.write_bytes(b'{"traceEvents": "none"}')
    changed = answers()
    assert len(built) == 7
    assert [problem["kind"] for problem in changed[0]["problems"]] != [
        problem["kind"] for problem in first[0]["problems"]
    ]
    worker.unlink()
    assert answers()[0]["rank_count"] == 63


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this setting")
def test_a_large_job_is_compared_without_huge_pages_and_other_answers_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_PROFILER_CACHE_DIR", str(tmp_path / "cache"))
    cache_job(tmp_path / "log" / "job", Cache(str(tmp_path / "cache"), 2**30), 64)
    seen: list[int] = []
    build = RunAnswers._build

    def look(self: RunAnswers, *arguments: Any) -> Any:
        seen.append(_huge_pages_are_off())
        return build(self, *arguments)

    monkeypatch.setattr(RunAnswers, "_build", look)
    with open_session(str(tmp_path / "log")) as session:
        ask(session, "distributed")
    assert seen == [1] and _huge_pages_are_off() == 0


def _huge_pages_are_off() -> int:
    get_thp_disable = 42  # of linux/prctl.h
    return int(ctypes.CDLL(None).prctl(get_thp_disable, 0, 0, 0, 0))


def test_answers_about_small_jobs_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_PROFILER_CACHE_DIR", str(tmp_path / "cache"))
    cache_job(tmp_path / "log" / "job", Cache(str(tmp_path / "cache"), 2**30), 63)
    with open_session(str(tmp_path / "log")) as session:
        ask(session, "distributed")
    assert not list((tmp_path / "cache").glob("*.distributed.json"))


def test_the_summaries_of_a_large_job_are_read_from_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later servers open none of the files of the ranks; without that file they read each of them."""
    monkeypatch.setenv("TORCH_PROFILER_CACHE_DIR", str(tmp_path / "cache"))
    cache_job(tmp_path / "log" / "job", Cache(str(tmp_path / "cache"), 2**30), 64)
    read: list[str] = []
    load = Cache.load_json

    def count(self: Cache, key: str, name: str) -> bytes | None:
        read.append(name)
        return load(self, key, name)

    monkeypatch.setattr(Cache, "load_json", count)

    def answer() -> dict[str, Any]:
        read.clear()
        with open_session(str(tmp_path / "log")) as session:
            return ask(session, "distributed")

    first = answer()
    assert read.count("summary") == 64
    assert answer() == first and read == ["summaries", "distributed"]
    (kept,) = (tmp_path / "cache").glob("*.summaries.json")
    other = next((tmp_path / "cache").glob("*.distributed.json")).read_bytes()
    wrong = [append_checksum(content, kept.name) for content in (b"[]", b'[{"events": 3}]')]
    for damaged in (kept.read_bytes()[:-9], *wrong, other):
        kept.write_bytes(damaged)
        assert answer() == first and read.count("summary") == 64


@pytest.mark.slow
def test_summaries_that_are_not_in_the_cache_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Very small files are read again faster than they are cached: a summary alone would promise the rest."""
    monkeypatch.setenv("TORCH_PROFILER_CACHE_DIR", str(tmp_path / "cache"))
    write(tmp_path / "log" / "job", Job(64, ddp(64), steps=2).documents())
    for _ in range(2):
        with open_session(str(tmp_path / "log")) as session:
            assert ask(session, "distributed")["rank_count"] == 64
            assert ask(session, "distributed/ranks", limit="2")["total"] == 64
    assert not list((tmp_path / "cache").glob("*.summaries.json"))
