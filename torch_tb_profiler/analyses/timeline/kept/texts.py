"""Texts as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.timeline.pyramid import Columns


def packed(name: str, texts: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Texts as `<name>.text`, uint8 of all of them, and `<name>.ends`, int64, where each ends."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(each) for each in encoded]).astype(np.int64)
    return {f"{name}.text": np.frombuffer(b"".join(encoded), np.uint8), f"{name}.ends": ends}


def unpacked(name: str, columns: Columns) -> list[str]:
    """The texts of such columns."""
    content, ends = columns[f"{name}.text"].tobytes(), columns[f"{name}.ends"].tolist()
    parts = (content[begin:end] for begin, end in zip([0, *ends], ends, strict=False))
    return [part.decode("utf-8", "surrogatepass") for part in parts]
