from __future__ import annotations

import json
from pathlib import Path

import pytest

from torch_tb_profiler.views._shared.names import SPOKEN, short_kernel_name, spoken_kernel_name

NAMES = json.loads((Path(__file__).parents[2] / "golden" / "kernel_names.json").read_text())


@pytest.mark.parametrize(("name", "short"), NAMES)
def test_the_page_and_the_command_line_say_the_same_short_name(name: str, short: str) -> None:
    assert short_kernel_name(name) == short


def test_a_name_in_a_sentence_is_cut() -> None:
    assert spoken_kernel_name("void f<int>(int)") == "f<…>"
    long = spoken_kernel_name("k" * 100)
    assert len(long) == SPOKEN and long.endswith("k…")
    assert spoken_kernel_name("k" * SPOKEN) == "k" * SPOKEN
