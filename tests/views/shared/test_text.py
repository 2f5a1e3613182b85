from __future__ import annotations

from torch_tb_profiler.views._shared.text import Phrase, link, plain, sentences, text


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
