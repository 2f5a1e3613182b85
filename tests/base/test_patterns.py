import gc
import importlib
import pickle
import re
from pathlib import Path

import pytest

import torch_tb_profiler
from torch_tb_profiler.base.patterns import AnyCase, _LazyRegex, lazy_regex


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


def test_every_expression_of_the_package_is_a_valid_one() -> None:
    root = Path(torch_tb_profiler.__file__).parent
    for path in root.rglob("*.py"):
        if " lazy_regex(" in path.read_text(encoding="utf-8"):
            importlib.import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))
    gc.unfreeze()  # modules are kept from the collector while tests run
    # Not isinstance: that asks objects of other packages for their class, and some warn.
    expressions = [each for each in gc.get_objects() if type(each) is _LazyRegex]
    gc.freeze()
    assert len(expressions) > 200
    for expression in expressions:
        pattern, flags = expression._source
        re.compile(pattern, flags)


@pytest.mark.parametrize("text", ["a_Softmax2", "SOFTMAX", "soft max", "\u017foftmax", "SOFTMA\u212a", ""])
def test_a_pattern_for_any_case_finds_what_ignoring_case_finds(text: str) -> None:
    for pattern in (r"(?P<all>softmax)|(?P<some>_[a-z]\w*\d)", r"(?<![a-z])soft", r"[^a-z0-9]", r"softma\w"):
        one, other = AnyCase(pattern), re.compile(pattern, re.IGNORECASE)
        assert one.search(text) == (other.search(text) is not None)
        assert one.fullmatch(text) == (other.fullmatch(text) is not None)
        assert one.groups(text) == [str(match.lastgroup) for match in other.finditer(text)]


def test_patterns_for_any_case_have_no_upper_case_of_their_own() -> None:
    for module in ("families", "short_names", "tensor_cores"):
        importlib.import_module(f"torch_tb_profiler.model.kernels.{module}")
    importlib.import_module("torch_tb_profiler.model.serving.kernels")
    gc.unfreeze()
    patterns = [each._folded.pattern for each in gc.get_objects() if type(each) is AnyCase]
    gc.freeze()
    assert len(patterns) > 30
    for pattern in patterns:
        plain = re.sub(r"\\.|\?P<", "", pattern)
        assert plain == plain.lower()
