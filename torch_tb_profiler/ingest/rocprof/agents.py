"""Agents: the processors (GPUs and CPUs) that rocprofv3 describes, and their numbers.

The description is the same object in JSON files and, as text, in databases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.slices import CodedTexts
from torch_tb_profiler.model.trace import ABSENT, Bool, Int64

_GPU = 2
"""`type` of a GPU in JSON."""

_MEMORY = (1, 2)
"""`heap_type` of a GPU's own memory, visible to the host (1) or not (2)."""

_LABEL = lazy_regex(r"(?:(?P<word>Agent|GPU)[ -])?(?P<number>\d{1,9})", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Agent:
    """A processor, as the file describes it.

    id     its id in records
    index  its number among all agents of the machine, as the tool's own output has it: "AGENT [4]"
    """

    id: int
    index: int
    gpu: bool
    name: str | None = None
    memory_bytes: int | None = None
    compute_units: int | None = None
    wave_size: int | None = None

    def properties(self) -> dict[str, Any]:
        """Return the agent as an entry of `deviceProperties`."""
        properties = {
            "name": self.name,
            "totalGlobalMem": self.memory_bytes,
            "numSms": self.compute_units,
            "warpSize": self.wave_size,
        }
        return {"id": self.index, **{key: value for key, value in properties.items() if value}}


class Agents:
    """The agents of one process by the id that records use."""

    def __init__(self, agents: Iterable[Agent]) -> None:
        self._by_id = {agent.id: agent for agent in agents}

    def indices(self, ids: Int64) -> Int64:
        """Return the indices of the agents with these ids (int64[k]); an id without description stays as it is."""
        return self._map(ids, lambda agent, id: agent.index if agent else id)

    def are_gpus(self, ids: Int64) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return whether each id is that of a GPU (bool[k])."""
        return self._map(ids, lambda agent, _: int(agent is not None and agent.gpu)).astype(np.bool_)

    def gpu_properties(self) -> list[dict[str, Any]]:
        """Return the GPUs as entries of `deviceProperties`."""
        gpus = sorted((agent for agent in self._by_id.values() if agent.gpu), key=lambda agent: agent.index)
        return [agent.properties() for agent in gpus]

    def _map(self, ids: Int64, value: Any) -> Int64:
        distinct, where = np.unique(ids, return_inverse=True)
        values = [value(self._by_id.get(id), id) for id in distinct.tolist()]
        mapped: Int64 = np.array(values, np.int64)[where.ravel()]
        return mapped


def parse_agent(
    described: Mapping[str, Any], id: object = None, index: object = None, gpu: object = None
) -> Agent | None:
    """Return the described agent, or None if it has no id.

    id, index, gpu  values that a row of a table gives beside the description; they take precedence
    """
    handle = described.get("id")
    described_id = handle.get("handle") if isinstance(handle, Mapping) else handle
    number = _int64_or_none(described_id if id is None else id)
    if number is None:
        return None
    node = _int64_or_none(described.get("logical_node_id") if index is None else index)
    name = described.get("product_name") or described.get("model_name") or described.get("name")
    return Agent(
        number,
        number if node is None else node,
        described.get("type") == _GPU if gpu is None else bool(gpu),
        name if isinstance(name, str) and name else None,
        _memory_bytes(described.get("mem_banks")),
        _int64_or_none(described.get("cu_count")),
        _int64_or_none(described.get("wave_front_size")),
    )


def _memory_bytes(banks: object) -> int | None:
    sizes = [
        size
        for bank in (banks if isinstance(banks, list) else ())
        if isinstance(bank, Mapping) and bank.get("heap_type") in _MEMORY
        if (size := _int64_or_none(bank.get("size_in_bytes"))) is not None
    ]
    return sum(sizes) or None


def _int64_or_none(value: object) -> int | None:
    return value if type(value) is int and -(2**63) < value < 2**63 else None


class DeviceLabels:
    """Numbers devices by their labels in tables of rocprofv3: `Agent 1`, `GPU 0`, or a number alone.

    What the number counts depends on the options of the recording. Devices keep the number that they have in the
    tables; the table of agents describes them if it fits that number.
    """

    def __init__(self) -> None:
        self._gpus: set[int] = set()
        self._words: set[str] = set()
        self._agents: list[Agent] = []

    def add_description(self, row: Mapping[str, str]) -> None:
        """Add a row of the table of agents, by its column names in lower case."""
        numbers = {
            key: int(text) for key, text in row.items() if text.isascii() and text.isdigit() and len(text) < 19
        }
        texts = {key: row[key] for key in ("name", "product_name", "model_name")}
        agent = parse_agent(
            {**texts, **numbers},
            numbers.get("node_id"),
            numbers.get("logical_node_id"),
            row["agent_type"] == "GPU",
        )
        if agent is not None:
            self._agents.append(agent)

    def numbers(self, labels: CodedTexts, gpu: Bool | None = None) -> Int64:
        """Return the numbers in the labels (int64[k]), ABSENT for labels that name no device.

        gpu  which labels are those of a GPU (bool[k]); None: all
        """
        matches = [_LABEL.fullmatch((text or "").strip()) for text in labels.texts]
        numbers = np.array([int(match["number"]) if match else ABSENT for match in matches], np.int64)
        for code in np.unique(labels.index if gpu is None else labels.index[gpu]).tolist():
            if match := matches[code]:
                self._gpus.add(int(match["number"]))
                self._words.add((match["word"] or "").lower())
        return numbers[labels.index]

    def device_properties(self) -> list[dict[str, Any]]:
        """Return the GPUs by number as entries of `deviceProperties`, or none if the numbering is ambiguous."""
        fitting = [gpus for gpus in self._possible_numberings() if gpus.keys() >= self._gpus]
        if not fitting or any(gpus != fitting[0] for gpus in fitting):
            return []
        return [fitting[0][number].properties() for number in sorted(fitting[0])]

    def _possible_numberings(self) -> list[dict[int, Agent]]:
        """Return the GPUs by number, for each meaning that the numbers in labels may have.

        A number alone is that of the node, "GPU 0" counts GPUs, and "Agent 1" counts agents or, with an option,
        nodes.
        """
        gpus = sorted((each for each in self._agents if each.gpu), key=lambda agent: agent.index)
        by_node = {each.id: each for each in gpus}
        by_agent = {each.index: each for each in gpus}
        by_gpu = dict(enumerate(gpus))
        numberings = {"": [by_node], "gpu": [by_gpu], "agent": [by_agent, by_node]}
        (word,) = self._words if len(self._words) == 1 else (None,)
        return [
            {number: replace(agent, id=number, index=number) for number, agent in numbering.items()}
            for numbering in numberings.get(word or "", [])
            if word is not None
        ]
