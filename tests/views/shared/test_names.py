from __future__ import annotations

from torch_tb_profiler.views._shared.names import SPOKEN, spoken_name


def test_a_name_in_a_sentence_is_cut() -> None:
    long = spoken_name("k" * 100)
    assert len(long) == SPOKEN and long.endswith("k…")
    assert spoken_name("k" * SPOKEN) == "k" * SPOKEN
