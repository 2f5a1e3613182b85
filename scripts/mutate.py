"""How many random changes of the code do the tests notice?

    pip install --group mutation
    python scripts/mutate.py --sample 300 --seed 1 --minutes 30 > mutants.jsonl
    python scripts/mutate.py --sample 60 analyses/overview views/overview > mutants.jsonl

Cosmic Ray's operators change one token or node of a module; a forked child compiles the changed text instead of
the file and runs the tests that execute that line (those that execute anything of the module, if the line runs on
import). One line of JSON per mutant: where, what, outcome. Nothing on disk changes.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import coverage
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "torch_tb_profiler"
MUTATED = ("model", "analyses", "base/intervals.py")
TESTS = ("tests/base", "tests/model", "tests/analyses", "tests/views", "tests/api")

OPERATORS = re.compile(
    r"NumberReplacer|AddNot|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceTrueWithFalse|ReplaceFalseWithTrue|"
    r"ReplaceBreakWithContinue|ReplaceContinueWithBreak|ZeroIterationForLoop|ReplaceUnaryOperator_Delete_.*|"
    r"ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_FloorDiv|FloorDiv_Mul|Div_Mul|BitAnd_BitOr|BitOr_BitAnd)|"
    r"ReplaceComparisonOperator_(Eq_NotEq|NotEq_Eq|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Lt_Gt|Gt_Lt|LtE_GtE|GtE_LtE)|"
    r"ReplaceComparisonOperator_(In_NotIn|NotIn_In|Is_IsNot|IsNot_Is)"
)
"""One plausible mistake each. Cosmic Ray has many more (`&` to `**`), which any test notices."""

PROCESSOR_SECONDS, SECONDS = 120, 1200
"""In which a mutant's tests have to end: one that loops never does, nor one that waits for what does not come."""


OUTCOMES = {0: "survived", 1: "killed", -signal.SIGXCPU: "timeout", -signal.SIGALRM: "timeout"}
"""By exit code of the tests; all others say that they did not run."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: str
    line: int
    operator: str
    occurrence: int


def main() -> None:
    """Draw mutants, run them, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="*", default=MUTATED, help="folders and files of the package")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument(
        "--coverage", type=Path, help="which test runs which line: kept here, and read if it exists"
    )
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * options.minutes
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp()
    mutants = sorted(
        all_mutants(options.places), key=lambda each: (each.path, each.line, each.operator, each.occurrence)
    )
    sample = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    print(f"{len(mutants)} mutants, {len(sample)} drawn", file=sys.stderr)
    tests = LineCoverage(options.coverage or Path(tempfile.mkdtemp()) / "data")
    # Forked children need not import these again.
    import numpy  # noqa: F401
    import pyarrow.compute  # noqa: F401

    for mutant in sample:
        if time.monotonic() > deadline:
            print("out of time", file=sys.stderr)
            break
        source = Path(mutant.path).read_text()
        changed = mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)
        outcome = run(mutant.path, changed, tests.of(mutant)) if changed else "no change"
        print(
            json.dumps({**asdict(mutant), "outcome": outcome, "change": difference(source, changed)}), flush=True
        )


def all_mutants(places: Sequence[str]) -> Iterator[Mutant]:
    """Yield every mutant of the modules of these places, except of type annotations: nothing evaluates them."""
    operators = {
        name: get_operator(name)() for name in operator_names() if OPERATORS.fullmatch(name.partition("/")[2])
    }
    for place in places:
        files = [PACKAGE / place] if place.endswith(".py") else sorted((PACKAGE / place).rglob("*.py"))
        for file in files:
            nodes = list(ast_nodes(get_ast(file.read_text())))
            for name, operator in operators.items():
                positions = ((node, start) for node in nodes for start, _ in operator.mutation_positions(node))
                for occurrence, (node, (line, _)) in enumerate(positions):
                    if not _is_annotation(node):
                        yield Mutant(str(file.relative_to(ROOT)), line, name, occurrence)


def _is_annotation(node: Any) -> bool:
    """Return True for a part of `x: here = 1`, `def f(x: here)` or `-> here`."""
    inner, outer = node, node.parent
    while outer is not None:
        if (
            outer.type in ("annassign", "tfpdef")
            and inner is outer.children[1 if outer.type == "annassign" else 2]
        ):
            return True
        if outer.type == "param" and outer.annotation is inner:
            return True
        if outer.type == "funcdef" and outer.annotation is inner:
            return True
        inner, outer = outer, outer.parent
    return False


CONTEXTS = """
import coverage, pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    coverage.Coverage.current().switch_context(item.nodeid.partition("[")[0])
    return (yield)
"""
"""A plugin of pytest that tells coverage which test runs."""


class LineCoverage:
    """Which tests execute which line."""

    def __init__(self, data: Path) -> None:
        if not data.exists():
            _record(data)
        self._data = coverage.CoverageData(str(data))
        self._data.read()

    def of(self, mutant: Mutant) -> list[str]:
        """Return the ids of the tests that execute the line of a mutant, those nearest to its module first."""
        by_line = self._data.contexts_by_lineno(str(ROOT / mutant.path))
        contexts = set(by_line.get(mutant.line, ()))
        if "" in contexts or not contexts:  # on import, or in the middle of a statement
            contexts = {context for of_line in by_line.values() for context in of_line}
        near = Path(mutant.path).parts[1:-1]
        return sorted(
            contexts - {""},
            key=lambda test: (-_count_shared_folders(near, Path(test.partition("::")[0]).parts[1:]), test),
        )


def _count_shared_folders(near: tuple[str, ...], folders: tuple[str, ...]) -> int:
    """Return how many folders two paths share."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(near, folders, strict=False)))


def _record(data: Path) -> None:
    folder = Path(tempfile.mkdtemp())
    (folder / "contexts.py").write_text(CONTEXTS)
    command = [sys.executable, "-m", "coverage", "run", "--rcfile=", f"--data-file={data}", f"--source={PACKAGE}"]
    command += ["-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "contexts", *TESTS]
    path = os.pathsep.join((str(ROOT), str(folder)))
    subprocess.run(command, check=True, stdout=sys.stderr, env={**os.environ, "PYTHONPATH": path})


def run(path: str, source: str, tests: list[str]) -> str:
    """Return the tests' verdict on a changed module: killed, survived, timeout, not covered, or error."""
    if not tests:
        return "not covered"
    child = os.fork()
    if child == 0:
        os.setpgrp()
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, resource.RLIM_INFINITY))
        signal.alarm(SECONDS)
        code = 70  # of what goes wrong around the tests
        try:
            code = _run_here(path, source, tests)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # processes that its tests started
    return OUTCOMES.get(os.waitstatus_to_exitcode(status), "error")


def _run_here(path: str, source: str, tests: list[str]) -> int:
    import pytest

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    changed, original = str(ROOT / path), SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> object:
        if loader.path == changed:
            return compile(source, changed, "exec")
        return original(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]))


def difference(source: str, changed: str | None) -> str:
    """Return the first line that differs, before and after."""
    pairs = zip(source.splitlines(), (changed or "").splitlines(), strict=False)
    return next((f"{old.strip()}  ->  {new.strip()}" for old, new in pairs if old != new), "")


if __name__ == "__main__":
    main()
