from __future__ import annotations

import pytest

from torch_tb_profiler.views._shared.text import (
    MAX_NAME_LENGTH,
    Phrase,
    device_noun,
    first_sentence,
    join_device_names,
    join_phrases,
    link,
    plain,
    sentences,
    shorten_frame,
    shorten_name,
    text,
)


def test_a_sentence_keeps_its_words_and_what_a_click_opens() -> None:
    late = text(
        "Rank {rank} waits {time} per step.", rank=Phrase("2", link("trace", worker="rank 2")), time="3.10 ms"
    )
    assert late == (Phrase("Rank "), Phrase("2", "trace?worker=rank+2"), Phrase(" waits 3.10 ms per step."))
    assert plain(late) == "Rank 2 waits 3.10 ms per step."


def test_names_of_a_trace_are_not_read_as_a_template() -> None:
    assert plain(text("{name} is slow", name="op{rank}{0}%s</b>")) == "op{rank}{0}%s</b> is slow"
    assert link("operators", search="a&b=c{}") == "operators?search=a%26b%3Dc%7B%7D"


def test_a_text_can_hold_texts() -> None:
    inner = text("{a} and {b}", a=Phrase("one", "trace"), b="two")
    assert plain(text("See {inner}.", inner=inner)) == "See one and two."
    assert text("{nothing}", nothing="") == ()


def test_sentences_are_spaced_and_empty_ones_left_out() -> None:
    assert plain(sentences(text("A."), (), text("B."))) == "A. B."
    assert sentences() == ()


def test_a_link_without_state_is_its_tab() -> None:
    assert link("memory") == link("memory", device=None) == "memory"


def test_the_first_sentence_ends_at_a_stop_outside_of_names() -> None:
    name = Phrase("a.py(3): f. G", "trace")
    texts = sentences(text("It is in {name}.", name=name), text("More."), text("Most."))
    assert plain(first_sentence(texts)) == "It is in a.py(3): f. G."
    assert first_sentence(text("One of 1.5 ms.")) == text("One of 1.5 ms.")
    assert first_sentence(()) == ()


def test_phrases_are_joined_like_words() -> None:
    assert [plain(join_phrases(items)) for items in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


@pytest.mark.parametrize(
    ("kind", "ids", "names"),
    [
        ("CUDA", [0], "GPU 0"),
        ("ROCm", [1, 3], "both GPUs"),
        ("NPU", range(8), "all 8 NPUs"),
        ("other", [0], "the device"),
        ("other", [0, 1], "both devices"),
        ("CUDA", [], "the GPU"),
    ],
)
def test_devices_are_named_by_their_kind(kind: str, ids: list[int], names: str) -> None:
    assert join_device_names(kind, ids) == names
    assert device_noun(None) == "device"


def test_a_name_in_a_sentence_is_cut() -> None:
    long = shorten_name("k" * 100)
    assert len(long) == MAX_NAME_LENGTH and long.endswith("k…")
    assert shorten_name("k" * MAX_NAME_LENGTH) == "k" * MAX_NAME_LENGTH


@pytest.mark.parametrize(
    ("frame", "phrase"),
    [
        ("/home/me/train.py(42): prepare_batch", "prepare_batch (train.py:42)"),
        ("train.py(42): prepare_batch", "prepare_batch (train.py:42)"),
        (r"C:\work\train.py(7): <listcomp>", "<listcomp> (train.py:7)"),
        ("<built-in method sleep>", "<built-in method sleep>"),
        (f"/a/{'f' * 99}.py(1): {'g' * 99}", f"{'g' * 47}… ({'f' * 47}…:1)"),
    ],
)
def test_a_frame_in_a_sentence_is_its_function_and_place(frame: str, phrase: str) -> None:
    assert shorten_frame(frame) == phrase
