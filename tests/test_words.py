"""The product speaks plainly: shapes of sentences that nobody understands at the first reading don't come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.views.sentences import read_table

ROOT = Path(__file__).resolve().parent.parent
MAX_HEADLINE_SENTENCES = 2
MAX_HEADLINE_WORDS = 28

RIDDLES = {
    "a percentage of a percentage": (
        r"\d%[^.;]{0,60}\d% of (?:that|it|this|these|which)\b|\d% of that\b|% of (?:that|it) (?:for|is)\b"
    ),
    "bounds": r"\bbounds (?:[\d<~{]|the step|the trace)",
    "twice as fast": r"\btwice as fast, ",
    "halving": r"\bHalving (?:all|the) ",
    "is not known": r"\b(?:is|are) not known\b",
    "cannot be told": r"\bcan(?:not|'t) be told\b|\bdo(?:es)? not tell\b|\bcannot tell\b|\btells? nothing\b",
    "tell whether": r"(?<!can't )\btell whether\b",
    "of each side tell": r"\bof each side (?:would )?tell\b",
    "gains nothing": r"\bgains? nothing\b",
    "no computation hides": r"\bthat (?:no computation|nothing) hides\b",
    "says when": r"\bsays when\b|\bschedule says\b",
    "emptied the queue": r"\b(?:has|had) emptied the queue\b",
    "keeps the others waiting": r"\bkeeps? the others waiting\b",
    "takes, without a subject's share": r"\btakes [\d.<]+% of (?:the (?:step|trace)|each step); without\b",
    "a peak in bytes": r"\bpeaks? at \d+ B\b",
    "a bare `nothing`": r"\bfor nothing:|\bNothing is advised\b|\bNo rule (?:finds|explains)\b",
}
"""What a riddle is called -> its shape."""

CODE = re.compile(r"[={}]|\bconst\b|;\n|\w: \w+;|\)\s*;|^;|'none'")
"""What stands between quotes or angle brackets by accident: a piece of a program."""


def riddles(sentence: str) -> list[str]:
    found = [name for name, shape in RIDDLES.items() if re.search(shape, sentence)]
    if any(part.count(";") > 1 for part in re.split(r"(?<=[.!?])\s", sentence)):
        found.append("two semicolons in one sentence")
    return found


def python_texts() -> Iterator[tuple[str, str]]:
    """Yield (place, text) of the strings in the package that look like prose, without docstrings."""
    for path in sorted((ROOT / "torch_tb_profiler").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        prose = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values]
                prose |= {id(part) for part in node.values}
                text = "".join(parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
                text = node.value
            else:
                continue
            if " " in text and not CODE.search(text.replace("{}", "")):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def page_texts() -> Iterator[tuple[str, str]]:
    """Yield (place, text) of what the page and the documents for users say, a paragraph at a time."""
    sources = [
        *(path for path in sorted((ROOT / "fe" / "src").rglob("*.ts*")) if ".test." not in path.name),
        ROOT / "README.md",
        ROOT / "samples" / "README.md",
    ]
    for path in sources:
        text = path.read_text("utf-8")
        if path.suffix == ".md":
            text = re.sub(r"^\|[^\n]*$|```.*?```", "", text, flags=re.DOTALL | re.MULTILINE)
            texts = re.split(r"\n\n+", text)
        else:
            text = re.sub(r"/\*.*?\*/|^\s*//.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
            # A string or the text between two tags; lines that a formatter broke belong together.
            pieces = re.findall(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`([^`]*)`|>([^<>{}]*)<", text)
            texts = [piece for groups in pieces if not CODE.search(piece := "".join(groups))]
        for each in texts:
            if " " in each.strip():
                yield str(path.relative_to(ROOT)), " ".join(each.split())


@pytest.mark.parametrize(
    "sentence",
    [
        "The GPU waits 68.3% of each step; 43.1% of that for operators on the host.",
        "The host bounds 99.7% of the step; twice as fast, a step takes 112 ms, not 222 ms.",
        "Halving all kernels gains nothing.",
        "How close to the peak is not known.",
        "Fewer than 4 steps do not tell whether memory leaks.",
        "Several of each side tell.",
        "12% is communication that no computation hides.",
        "100% of the device work starts when the schedule says.",
        "A call had emptied the queue.",
        "conv2d takes 81% of the trace; without it, the trace takes 14 ms.",
        "Memory peaks at 8 B; div_ holds it.",
        "No rule finds 2% of the trace to gain.",
        "One; two; three.",
    ],
)
def test_a_riddle_is_noticed(sentence: str) -> None:
    assert riddles(sentence)


def test_plain_sentences_pass() -> None:
    for sentence in (
        "GPU 0 is idle for 68% of an average step (152 of 222 ms).",
        "Exposed communication takes 12% of an average step.",
        "Can't tell from 3 steps; record at least 12.",
    ):
        assert riddles(sentence) == []


def test_no_view_speaks_in_riddles() -> None:
    assert [(row, found) for row in read_table() if (found := riddles(row[3]))] == []


def test_no_source_speaks_in_riddles() -> None:
    texts = [*python_texts(), *page_texts()]
    assert len(texts) > 2000
    assert [(where, text, found) for where, text in texts if (found := riddles(text))] == []


def test_headlines_are_short() -> None:
    headlines = [row for row in read_table() if row[2] == "headline"]
    assert headlines
    # A period inside a name (model.layers.3) or a number ends no sentence.
    counts = {row: len(re.findall(r"[.!?](?=\s|$)", row[3])) for row in headlines}
    assert [row for row in headlines if counts[row] > MAX_HEADLINE_SENTENCES] == []
    # A number and its unit are one word.
    words = {row: len(re.sub(r"(\d) (?=[µnm]?s\b|[KMG]?i?B\b)", r"\1", row[3]).split()) for row in headlines}
    assert [row for row in headlines if words[row] > MAX_HEADLINE_WORDS] == []
