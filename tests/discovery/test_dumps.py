"""Which files are dumps, and which run they belong to."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch_tb_profiler.discovery import ListedFile, ListedRun, Span, Worker, find_dumps, with_dumps
from torch_tb_profiler.storage import FileEntry, open_location


@dataclass
class Heads:
    """Names whose content begins like a dump; remembers who was asked."""

    dumps: set[str] = field(default_factory=set)
    opened: list[str] = field(default_factory=list)

    def __call__(self, file: ListedFile) -> bool:
        self.opened.append(file.path)
        return file.path in self.dumps


def list_dumps(*paths: str) -> list[ListedFile]:
    location = open_location("/log")
    return [ListedFile.of(location, FileEntry(path, 1, "1", None)) for path in paths]


def found(heads: Heads, *paths: str) -> dict[str, int | None]:
    return {dump.file.path: dump.rank for dump in find_dumps(list_dumps(*paths), heads)}


def runs(*paths: str, traces: tuple[str, ...] = ()) -> dict[str, list[str]]:
    known = [ListedRun(name, (Worker("w", None, (Span("1", "1", list_dumps("x")[0]),)),)) for name in traces]
    dumps = find_dumps(list_dumps(*paths), Heads())
    joined = with_dumps(known, dumps, root_name="log", prefix="")
    return {run.name: [dump.file.path for dump in run.dumps] for run in joined}


def test_default_names_need_no_look_inside() -> None:
    heads = Heads()
    assert found(
        heads, "a/nccl_trace_rank_0", "a/comm_lib_trace_rank_12.json", "a/job_nccl_trace_rank_3.pickle"
    ) == {
        "a/nccl_trace_rank_0": 0,
        "a/comm_lib_trace_rank_12.json": 12,
        "a/job_nccl_trace_rank_3.pickle": 3,
    }
    assert heads.opened == []


def test_of_another_series_one_readable_dump_is_enough() -> None:
    assert found(Heads({"a/fr_1"}), "a/fr_0", "a/fr_1", "b/fr_0", "a/other_0") == {"a/fr_0": 0, "a/fr_1": 1}


def test_other_files_are_left_alone() -> None:
    heads = Heads()
    paths = (
        "events.out.tfevents.17.host.0",
        "w.1.pt.trace.json",
        "snapshot.pickle",
        "rank0.txt",
        "rank0.stack.txt",
    )
    assert found(heads, *paths) == {} and heads.opened == []


def test_stacks_belong_to_the_dumps_beside_them() -> None:
    names = ("h/nccl_trace_rank_2", "h/node3_rank2.stack.txt", "h/stack_rank_11.txt", "elsewhere/stack_rank_0.txt")
    assert found(Heads(), *names) == {
        "h/nccl_trace_rank_2": 2,
        "h/node3_rank2.stack.txt": 2,
        "h/stack_rank_11.txt": 11,
    }


def test_a_folder_of_dumps_is_a_run_and_one_in_or_below_a_run_belongs_to_it() -> None:
    name = "nccl_trace_rank_0"
    assert runs(name) == {"log": [name]}
    assert runs(f"hang/{name}") == {"hang": [f"hang/{name}"]}
    assert runs(f"hang/rank0/{name}") == {"hang": [f"hang/rank0/{name}"]}
    assert runs(f"job/{name}", traces=("job",)) == {"job": [f"job/{name}"]}
    assert runs(f"job/fr/{name}", traces=("job",)) == {"job": [f"job/fr/{name}"]}
    assert runs(f"other/fr/{name}", traces=("job",)) == {"job": [], "other/fr": [f"other/fr/{name}"]}
