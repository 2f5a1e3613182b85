"""How tables of rocprofv3 call a device: `Agent 1`, `GPU 0` or a number alone, as they were asked to.

Devices keep the number that they have in the tables. A table of agents names them where it fits that number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from torch_tb_profiler.ingest.rocprof.agents import agent_of
from torch_tb_profiler.ingest.rocprof.records import Agent
from torch_tb_profiler.ingest.slices import CodedTexts
from torch_tb_profiler.model.trace import ABSENT, Bool, Int64

_LABEL = re.compile(r"(?:(?P<word>Agent|GPU)[ -])?(?P<number>\d{1,9})", re.IGNORECASE | re.ASCII)


class Labels:
    """Collects the labels of GPUs and the agents that are described."""

    def __init__(self) -> None:
        self._gpus: set[int] = set()
        self._words: set[str] = set()
        self._agents: list[Agent] = []

    def describe(self, row: Mapping[str, str]) -> None:
        """A row of a table of agents, by the names of its columns in lower case."""
        numbers = {
            key: int(text) for key, text in row.items() if text.isascii() and text.isdigit() and len(text) < 19
        }
        texts = {key: row[key] for key in ("name", "product_name", "model_name")}
        agent = agent_of(
            {**texts, **numbers},
            numbers.get("node_id"),
            numbers.get("logical_node_id"),
            row["agent_type"] == "GPU",
        )
        if agent is not None:
            self._agents.append(agent)

    def numbers(self, labels: CodedTexts, gpu: Bool | None = None) -> Int64:
        """int64[k]: the numbers in the labels, ABSENT of what is no agent or a CPU by its label.

        gpu  where a label is of a GPU; None: everywhere
        """
        matches = [_LABEL.fullmatch((text or "").strip()) for text in labels.texts]
        number = np.array([int(match["number"]) if match else ABSENT for match in matches], np.int64)
        for code in np.unique(labels.of if gpu is None else labels.of[gpu]).tolist():
            if match := matches[code]:
                self._gpus.add(int(match["number"]))
                self._words.add((match["word"] or "").lower())
        return number[labels.of]

    def devices(self) -> list[dict[str, Any]]:
        """The GPUs as `deviceProperties` lists devices, by their number; none where the counting is in doubt."""
        ways = [way for way in self._ways() if way.keys() >= self._gpus]
        if not ways or any(way != ways[0] for way in ways):
            return []
        return [ways[0][number].properties() for number in sorted(ways[0])]

    def _ways(self) -> list[dict[int, Agent]]:
        """GPUs by the numbers that labels may mean.

        A number alone is that of the node, "GPU 0" counts GPUs, and "Agent 1" counts agents or, asked to, nodes.
        """
        gpus = sorted((each for each in self._agents if each.gpu), key=lambda agent: agent.index)
        by_node = {each.id: each for each in gpus}
        by_agent = {each.index: each for each in gpus}
        by_gpu = dict(enumerate(gpus))
        ways = {"": [by_node], "gpu": [by_gpu], "agent": [by_agent, by_node]}
        (word,) = self._words if len(self._words) == 1 else (None,)
        return [
            {number: replace(agent, id=number, index=number) for number, agent in way.items()}
            for way in ways.get(word or "", [])
            if word is not None
        ]
