"""What a report holds: answers of the routes, within a number of bytes."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from torch_tb_profiler.http.responses import status


class Contents:
    """What the page of a report reads (`fe/src/api/embedded.ts`).

    recordings  (run, worker, span) of each trace, the first one first
    entries     (path, parameters with the names of the trace, number of the answer)
    answers     (HTTP status, body as base64 of gzip)
    left_out    what it does not hold, in words
    """

    def __init__(self, budget: int) -> None:
        self.recordings: list[tuple[str, str, str]] = []
        self.entries: list[tuple[str, dict[str, str], int]] = []
        self.answers: list[tuple[int, str]] = []
        self.left_out: list[str] = []
        self._left = budget

    def put(self, path: str, params: Mapping[str, str], body: Any) -> bool:
        """Keep an answer; False if it does not fit."""
        packed = base64.b64encode(gzip.compress(msgspec.json.encode(body), 9, mtime=0)).decode()
        size = len(packed) + len(json.dumps([path, dict(params)])) + 32
        if size > self._left:
            return False
        self._left -= size
        self.entries.append((path, dict(params), len(self.answers)))
        self.answers.append((status(body), packed))
        return True

    def also(self, path: str, params: Mapping[str, str]) -> None:
        """The last answer is the one to these parameters, too."""
        self.entries.append((path, dict(params), len(self.answers) - 1))
