import gc
import importlib
import pickle
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import torch_tb_profiler
from torch_tb_profiler.base.patterns import AnyCase, Words, _LazyRegex, fold_case, lazy_regex


def test_an_expression_is_compiled_with_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_ = re.compile

    def count(pattern: str, flags: int) -> re.Pattern[str]:
        compiled.append(pattern)
        return compile_(pattern, flags)

    monkeypatch.setattr(re, "compile", count)
    name = lazy_regex("^RANK_([0-9]+)$", re.IGNORECASE)
    assert not compiled
    assert [name.sub(r"\1", "rank_12"), name.search("rank_x")] == ["12", None]
    assert [match[1] for match in map(name.match, ["rank_3", "rank_4"]) if match] == ["3", "4"]
    assert set(compiled) == {"^RANK_([0-9]+)$"}


def test_an_expression_behaves_like_a_compiled_one() -> None:
    lazy, compiled = lazy_regex(rb"a(?P<b>.)"), re.compile(rb"a(?P<b>.)")
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)
    assert pickle.loads(pickle.dumps(lazy)).findall(b"ab ac") == compiled.findall(b"ab ac") == [b"b", b"c"]


@pytest.mark.parametrize(
    "text", ["a_Softmax2", "SOFTMAX", "soft max", "\u017foftmax", "SOFTMA\u212a", "\u0130", ""]
)
def test_a_pattern_finds_in_folded_texts_what_it_finds_ignoring_case(text: str) -> None:
    for pattern in (r"(?P<all>softmax)|(?P<some>_[a-z]\w*\d)", r"(?<![a-z])soft", r"[^a-z0-9]", r"softma\w", "i"):
        folded = [match.lastgroup for match in re.finditer(pattern, fold_case(text))]
        assert folded == [match.lastgroup for match in re.finditer(pattern, text, re.IGNORECASE)]


ROOT = Path(torch_tb_profiler.__file__).parent
KERNELS = Path(__file__).parent.parent / "model" / "kernels" / "kernel_names.tsv"


def objects_of_modules_with(text: str, *types: type) -> list[Any]:
    """Return the objects of these types, once the modules with a text are imported."""
    for path in ROOT.rglob("*.py"):
        if text in path.read_text(encoding="utf-8"):
            importlib.import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
    gc.unfreeze()  # modules are kept from the collector while tests run
    # Not isinstance: that asks objects of other packages for their class, and some warn.
    found = [each for each in gc.get_objects() if type(each) in types]
    gc.freeze()
    return found


def test_every_expression_of_the_package_is_a_valid_one() -> None:
    expressions = objects_of_modules_with(" lazy_regex(", _LazyRegex)
    assert len(expressions) > 200
    for expression in expressions:
        pattern, flags = expression._source
        re.compile(pattern, flags)


@cache
def rules() -> list[Words]:
    """Return the rules of the package that look for words."""
    found = objects_of_modules_with("base.patterns import", Words, AnyCase)
    assert len(found) > 50
    return found


def whole(rule: Words) -> re.Pattern[str]:
    """Return one expression for a rule, before which no word is asked for."""
    patterns = [pattern.pattern for _, pattern in rule._patterns]
    flags = re.IGNORECASE if type(rule) is AnyCase else 0
    return re.compile("|".join([*map(re.escape, rule._words), *patterns]), flags)


def test_words_and_patterns_for_any_case_have_no_upper_case_of_their_own() -> None:
    for rule in rules():
        plain = (*rule._words, *(word + re.sub(r"\\.", "", each.pattern) for word, each in rule._patterns))
        assert type(rule) is Words or all(each == each.lower() for each in plain)


def parse(expression: re.Pattern[Any]) -> Any:
    """Return the parts of an expression, as `re` compiles them."""
    return (getattr(re, "_parser", None) or importlib.import_module("sre_parse")).parse(expression.pattern)


def always_has(word: str, parsed: Any) -> bool:
    """Return whether all that a parsed expression matches has a word, as far as its parts show."""
    run = ""
    for operation, value in parsed:
        run = run + chr(value) if str(operation) == "LITERAL" else ""
        if word in run:
            return True
        if str(operation) == "SUBPATTERN" and always_has(word, value[-1]):
            return True
        if str(operation) == "ASSERT" and value[0] > 0 and always_has(word, value[1]):
            return True
        if str(operation) == "BRANCH" and all(always_has(word, branch) for branch in value[1]):
            return True
    return word == ""


def test_a_word_is_part_of_all_that_its_pattern_matches() -> None:
    assert not always_has("mm", parse(re.compile("^(?:add|b)?mm$|(?:^|_)m")))
    for rule in rules():
        for word, pattern in rule._patterns:
            assert always_has(word, parse(pattern)), (word, pattern.pattern)


@pytest.mark.parametrize(
    ("module", "expression", "word"),
    [
        ("discovery.companions", "_AGENTS", ".csv"),
        ("discovery.companions", "_TABLE", ".csv"),
        ("discovery.origin_files", "_METRICS", "^rank_"),
        ("discovery.trackers", "_MLFLOW_TAG", "/tags/mlflow.runName"),
        ("discovery.trackers", "_WANDB", ".wandb"),
        ("ingest.aorta", "_LINE", '"global_step"'),
        ("ingest.gpu_metrics.amd_smi", "_HEADER", "timestamp"),
        ("ingest.gpu_metrics.nvidia_smi", "_MONITOR_HEADER", "#"),
        ("ingest.kineto.document", "_SURROGATE_ESCAPE", "\\u"),
        ("ingest.rocprof.sniff", "_JSON", "rocprofiler-sdk-tool"),
        ("model.communication.groups", "_ELIDED", "..."),
        ("model.costs.formulas.elementwise", "FOREACH", "^aten::_foreach_"),
        ("model.costs.formulas.elementwise", "GENERATED", "^triton_"),
        ("model.kernels.families", "_TRITON", "^triton_"),
        ("model.kernels.short_names", "_CUDNN_ATTENTION", "^cudnn_generated"),
        ("model.kernels.short_names", "_FIRST_TENSOR", "cublasGem"),
        ("model.kernels.short_names", "_OPAQUE", "OpaqueType<"),
        ("model.kernels.short_names", "_TRITON", "^triton_"),
        ("model.origins.compiled", "CALL", "^## Call"),
        ("model.ranks", "_LABEL", "^["),
        ("model.vendors.gaudi", "_CARD_PROCESS", "HPU"),
    ],
)
def test_a_word_that_is_asked_for_first_is_part_of_all_matches(module: str, expression: str, word: str) -> None:
    parsed = parse(getattr(importlib.import_module(f"torch_tb_profiler.{module}"), expression))
    if word.startswith("^"):
        word = word[1:]
        assert str(parsed[0][0]) == "AT"
        parsed = parsed[1 : 1 + len(word)]
    assert always_has(word, parsed)


def test_rules_answer_of_names_what_one_expression_without_words_answers() -> None:
    names = [line.split("\t")[1].replace("#", "16") for line in KERNELS.read_text().splitlines()[1:]]
    found = 0
    for rule in rules():
        expression = whole(rule)
        parts = [*rule._words, *(word for word, _ in rule._patterns)]
        near = [f"{names[i % len(names)]}_{part.upper()}2" for i, part in enumerate(parts)]
        calls = [
            form.format(part) for part in parts for form in ("{}", "cuda{}", "hip{}Async", "{}12): wait", "a {}b")
        ]
        for text in (*names, *near, *calls):
            assert rule.search(text) == (expression.search(text) is not None), (text, expression.pattern)
            found += rule.search(text)
    assert found > 1000
