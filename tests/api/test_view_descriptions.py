"""What `torch-tb-profiler view` lists: every view says what it answers."""

from __future__ import annotations

from collections import defaultdict

from torch_tb_profiler.api.views import describe_view, describe_views
from torch_tb_profiler.views import all_views


def test_every_view_of_a_tab_says_what_it_alone_answers() -> None:
    answers: dict[str, list[str]] = defaultdict(list)
    for view in all_views():
        answers[view.tab].append(describe_view(view))
        assert f"  {view.slug:24}{describe_view(view)}\n" in describe_views()
    for text in answers.values():
        assert len(set(text)) == len(text)
        assert all(each.endswith(".") and 10 < len(each) < 120 and "payload" not in each for each in text)


def test_the_parts_of_the_overview_are_told_apart() -> None:
    lines = {line.split()[0]: line for line in describe_views().splitlines() if line.startswith("  overview")}
    assert "what to do first" in lines["overview"]
    assert "no schedule is replayed" in lines["overview/preview"]
    assert "who is late" in lines["overview/ranks"]
