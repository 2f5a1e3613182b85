"""Which counters belong to which trace."""

from __future__ import annotations

import pytest

from torch_tb_profiler.discovery import ListedFile, with_counter_files
from torch_tb_profiler.storage import FileId, open_location

LOCATION = open_location("memory://beside")


def list_files(*paths: str, identity: str = "1") -> list[ListedFile]:
    return [ListedFile(LOCATION, path, 10, FileId(f"log/{path}", identity)) for path in paths]


def list_attached(*paths: str) -> dict[str, list[str]]:
    files = with_counter_files(list_files(*paths), lambda file: file.name != "config.json")
    assert [file.path for file in files] == list(paths)
    return {file.path: [each.path for each in file.counters] for file in files if file.counters}


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["a/x.pt.trace.json", "b/1_counter_collection.csv"], {}),
        (
            ["a/x.pt.trace.json", "a/pass_2/c_counter_collection.csv", "a/pass_1/c_counter_collection.csv"],
            {"a/x.pt.trace.json": ["a/pass_1/c_counter_collection.csv", "a/pass_2/c_counter_collection.csv"]},
        ),
        (
            ["x.pt.trace.json", "config.json", "counter_collection.csv.gz"],
            {"x.pt.trace.json": ["counter_collection.csv.gz"]},
        ),
        (  # two spans of one worker
            ["a/x.1.pt.trace.json", "a/x.2.pt.trace.json", "a/counter_collection.csv"],
            dict.fromkeys(["a/x.1.pt.trace.json", "a/x.2.pt.trace.json"], ["a/counter_collection.csv"]),
        ),
        (  # two ranks: of one that is not named nobody knows whose it is
            ["a/rank0.1.pt.trace.json", "a/rank1.1.pt.trace.json", "a/rank1_counter_collection.csv",
             "a/7_counter_collection.csv"],
            {"a/rank1.1.pt.trace.json": ["a/rank1_counter_collection.csv"]},
        ),
    ],
)  # fmt: skip
def test_counters_belong_to_the_trace_of_their_folder(paths: list[str], found: dict[str, list[str]]) -> None:
    assert list_attached(*paths) == found


def test_the_id_of_a_trace_tells_its_counters() -> None:
    trace, other = list_files("a/x.pt.trace.json"), list_files("a/counter_collection.csv", identity="2")
    seen = set()
    for counters in ([], list_files("a/counter_collection.csv"), other):
        (file, *_) = with_counter_files([*trace, *counters], lambda file: True)
        assert file.id.uri == trace[0].id.uri
        seen.add(file.id.identity)
    assert len(seen) == 3


def test_what_is_read_together_with_the_file_of_a_trainer_has_no_counters_of_its_own() -> None:
    """PyTorch's file beside Composer's is a part of that one."""
    assert (
        list_attached(
            "traces/ep0-ba4-rank1.json",
            "torch_traces/rank1.4.pt.trace.json",
            "torch_traces/counter_collection.csv",
        )
        == {}
    )
