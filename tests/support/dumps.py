"""Flight recorder dumps of drawn jobs: who called what, and what finished."""

from __future__ import annotations

import io
import json
import os
import pickle
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch_tb_profiler.ingest.flight_recorder.read import read_dump
from torch_tb_profiler.model.flight_recorder import JobDumps, RankFile

START_NS = 1_700_000_000_000_000_000
STEP_NS = 1_000_000
"""Time between two drawn calls."""

Entry = dict[str, Any]


class DrawnJob:
    """The recorders of the ranks of a job; calls are drawn in order, 1 ms apart.

    groups   name -> its members, besides the group "0" of all ranks
    backend  "gloo" draws entries whose state stays "scheduled"
    dumped_ns  time that the writer of the dumps notes in them
    """

    def __init__(
        self, world: int, groups: Mapping[str, Sequence[int]] | None = None, backend: str = "nccl"
    ) -> None:
        self.world = world
        self.backend = backend
        self.groups: dict[str, Sequence[int]] = {"0": range(world), **(groups or {})}
        self.entries: dict[int, list[Entry]] = {rank: [] for rank in range(world)}
        self.numbers: Counter[tuple[int, str, bool]] = Counter()
        self.time = START_NS
        self.lost: dict[int, int] = {}
        self.dumped_ns: int | None = None

    def call(
        self,
        operation: str,
        ranks: Iterable[int] | None = None,
        *,
        group: str = "0",
        done: bool = True,
        elements: int = 32,
        line: int = 10,
    ) -> DrawnJob:
        """Let some ranks (default: all members of the group) call a collective."""
        for rank in self.groups[group] if ranks is None else ranks:
            self.numbers[rank, group, False] += 1
            self._add(rank, group, operation, False, done, elements, line)
        self.time += STEP_NS
        return self

    def message(
        self, operation: str, rank: int, peer: int, *, group: str = "0", done: bool = True, line: int = 20
    ) -> DrawnJob:
        """Let a rank send to or receive from a peer; ranks are global."""
        self.numbers[rank, group, True] += 1
        members = list(self.groups[group])
        own, other = members.index(rank), members.index(peer)
        name = f"send {own}->{other}" if operation == "send" else f"recv {own}<-{other}"
        self._add(rank, group, name, True, done, 16, line)
        self.time += STEP_NS
        return self

    def batch(self, rank: int, messages: Sequence[tuple[str, int]], *, done: bool = True) -> DrawnJob:
        """Let a rank call a coalesced batch: its messages stay scheduled, the closing entry has the state."""
        self.numbers[rank, "0", True] += 1
        for operation, peer in messages:
            arrow = "->" if operation == "send" else "<-"
            self._add(rank, "0", f"{operation} {rank}{arrow}{peer}", True, False, 16, 30)
        self._add(rank, "0", "coalesced", True, done, 0, 30)
        self.time += STEP_NS
        return self

    def lose(self, rank: int, count: int) -> DrawnJob:
        """Let the ring of a rank overwrite its first entries."""
        self.lost[rank] = count
        return self

    def _add(self, rank: int, group: str, name: str, p2p: bool, done: bool, elements: int, line: int) -> None:
        stateful = self.backend == "nccl"
        description = "default_pg" if group == "0" else group
        self.entries[rank].append(
            {
                "record_id": len(self.entries[rank]),
                "pg_id": list(self.groups).index(group),
                "process_group": (group, description),
                "collective_seq_id": self.numbers[rank, group, False],
                "p2p_seq_id": self.numbers[rank, group, True],
                "op_id": self.numbers[rank, group, False] + self.numbers[rank, group, True],
                "profiling_name": f"{self.backend}:{name}",
                "time_created_ns": self.time,
                "input_sizes": [[elements]],
                "output_sizes": [[elements]],
                "input_dtypes": ["Float"],
                "output_dtypes": ["Float"],
                "state": "completed" if done and stateful else "scheduled",
                "time_discovered_started_ns": None,
                "time_discovered_completed_ns": self.time + 1000 if done and stateful else None,
                "retired": done,
                "timeout_ms": 600_000,
                "is_p2p": p2p,
                "frames": [
                    {
                        "name": name.split(" ")[0],
                        "filename": "/venv/lib/python3.11/site-packages/torch/c10d.py",
                        "line": 1,
                    },
                    {"name": "train_step", "filename": "/job/train.py", "line": line},
                ],
            }
        )

    def content(self, rank: int) -> dict[str, Any]:
        """Return a rank's dump as plain values."""
        status: dict[str, dict[str, int]] = defaultdict(dict)
        for entry in self.entries[rank]:
            place = status[str(entry["pg_id"])]
            place["last_enqueued_collective"] = entry["op_id"]
            place["last_completed_collective"] = entry["op_id"] - (not entry["retired"])
            place["last_started_collective"] = -1
        return {
            "version": "2.10",
            "comm_lib_version": "2.27.7",
            "pg_config": {
                name: {"name": name, "desc": "default_pg" if name == "0" else name, "ranks": str(list(ranks))}
                for name, ranks in self.groups.items()
                if rank in ranks
            },
            "pg_status": dict(status),
            "entries": self.entries[rank][self.lost.get(rank, 0) :],
            **({} if self.dumped_ns is None else {"dumped_at_ns": self.dumped_ns}),
        }

    def data(self, rank: int) -> bytes:
        """Return a rank's dump as PyTorch writes it: a pickle of protocol 2."""
        return pickle.dumps(self.content(rank), protocol=2)

    def json(self, rank: int) -> bytes:
        """Return a rank's dump in the JSON dialect: 0 for null, status as text, no stacks, no empty list."""
        content = self.content(rank)
        content["pg_status"] = {
            name: {key: str(value) for key, value in status.items()}
            for name, status in content["pg_status"].items()
        }
        for entry in content["entries"]:
            entry.pop("frames", None)
        entries = [
            {key: 0 if value is None else value for key, value in entry.items()} for entry in content["entries"]
        ]
        content["entries"] = entries
        if not entries:
            del content["entries"]
        return json.dumps(content).encode()

    def dumps(
        self,
        ranks: Iterable[int] | None = None,
        *,
        after_ns: int | None = 600 * 10**9,
        unreadable: Iterable[int] = (),
    ) -> JobDumps:
        """Return the dumps of some ranks (default: all), written so long after the last call."""
        written = None if after_ns is None else self.time + after_ns
        files = []
        for rank in range(self.world) if ranks is None else ranks:
            dump = None if rank in unreadable else read_dump(io.BytesIO(self.data(rank)), rank)
            problem = "the pickle is truncated at byte 7" if dump is None else None
            files.append(RankFile(rank, f"nccl_trace_rank_{rank}", dump, problem, written))
        return JobDumps(tuple(files))

    def write(self, folder: Path, *, after_ns: int = 600 * 10**9, series: str = "nccl_trace_rank_") -> Path:
        """Write the dumps of all ranks into a folder, with the time at which they would have been written."""
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(self.world):
            path = folder / f"{series}{rank}"
            path.write_bytes(self.data(rank))
            os.utime(path, ns=(self.time + after_ns, self.time + after_ns))
        return folder


def hung_job(world: int = 4, culprit: int = 1) -> DrawnJob:
    """Return a job in which one rank never calls the fourth all_reduce."""
    job = DrawnJob(world)
    for _ in range(3):
        job.call("all_reduce")
    return job.call("all_reduce", [rank for rank in range(world) if rank != culprit], done=False, line=88)
