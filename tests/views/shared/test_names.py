from __future__ import annotations

import pytest

from torch_tb_profiler.views._shared.names import SPOKEN, spoken_frame, spoken_name


def test_a_name_in_a_sentence_is_cut() -> None:
    long = spoken_name("k" * 100)
    assert len(long) == SPOKEN and long.endswith("k…")
    assert spoken_name("k" * SPOKEN) == "k" * SPOKEN


@pytest.mark.parametrize(
    ("frame", "spoken"),
    [
        ("/home/me/train.py(42): prepare_batch", "prepare_batch (train.py:42)"),
        ("train.py(42): prepare_batch", "prepare_batch (train.py:42)"),
        (r"C:\work\train.py(7): <listcomp>", "<listcomp> (train.py:7)"),
        ("<built-in method sleep>", "<built-in method sleep>"),
        (f"/a/{'f' * 99}.py(1): {'g' * 99}", f"{'g' * 47}… ({'f' * 47}…:1)"),
    ],
)
def test_a_frame_in_a_sentence_is_its_function_and_place(frame: str, spoken: str) -> None:
    assert spoken_frame(frame) == spoken
