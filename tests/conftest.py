"""Fixtures for all tests: no test touches the user's cache, real traces come from TRACE_CORPUS."""

from __future__ import annotations

import gc
import itertools
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.examples import BRIEF, spread_cases, take_turns

# A busy machine is slow, and no example is wrong for that.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
os.environ["TORCH_PROFILER_BACKGROUND"] = "0"  # no process may outlive its test, or a fixture of several tests
settings.register_profile(BRIEF, settings.get_profile("patient"), max_examples=15)
BRIEF_SEEDS = 2
"""Random cases of each test that draws them by a `seed`, where properties are tried briefly."""

LONGEST_NAME = 50

BATCH = 16
"""Quick tests of a file that go to a process together, at most."""
NOT_QUICK = ("browser", "slow", "torch")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the soak test and the fuzzers, for minutes each")
    parser.addoption(
        "--cases",
        type=int,
        metavar="N",
        help="run at most N cases of each test; which, this Python's version says",
    )
    parser.addoption(
        "--share",
        action="append",
        default=[],
        metavar="PART=I/N",
        help="of the tests of each file in this folder, run every N-th, first the I-th",
    )


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out fuzzers and the soak test unless asked, and the cases that this run shall not have.

    What fuzzers and the soak test find depends on luck and speed. Of what remains, tests that share a fixture of
    their file run in one process, so that it is made once; so do tests of a file in browsers, whose server then
    reads the traces that they are about once.
    """
    long, brief = config.getoption("--long"), config.getoption("--hypothesis-profile") == BRIEF
    selected = [
        item
        for item in items
        if (long or not item.get_closest_marker("long")) and not (brief and _position_of_seed(item) >= BRIEF_SEEDS)
    ]
    if most := config.getoption("--cases"):
        chosen = spread_cases([item.nodeid for item in selected], most, sys.version_info.minor)
        selected = [selected[index] for index in chosen]
    for share in config.getoption("--share"):
        part, _, which = share.rpartition("=")
        turn, _, turns = which.partition("/")
        chosen = take_turns([item.nodeid for item in selected], part, int(turn), int(turns))
        selected = [selected[index] for index in chosen]
    if len(selected) < len(items):
        remaining = set(selected)
        config.hook.pytest_deselected(items=[item for item in items if item not in remaining])
        items[:] = selected
    quick: Counter[str] = Counter()
    for item in items:
        if item.get_closest_marker("xdist_group"):
            continue
        file = item.nodeid.partition("::")[0]
        if _shares_a_fixture(item) or item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group(file))
        elif not any(map(item.get_closest_marker, NOT_QUICK)):
            # One at a time, a process would wait after each for the next, and what pytest-xdist counts then is
            # as much work as the number of groups: for all tests as long as thousands of them take.
            item.add_marker(pytest.mark.xdist_group(f"{file} {quick[file] // BATCH}"))
            quick[file] += 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without the garbage collector: nearly all that is made lives until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Keep the garbage collector from what lives until the end: the tests themselves, and all modules.

    It would look through these hundreds of thousands of objects again and again: 3% of the work of quick tests.
    """
    gc.collect()
    gc.freeze()


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name long bytes by their argument, which pytest numbers: each process sends all names, and one had 120 MB.

    Nothing of the content is in a name: what is drawn at import may differ between processes, as gzip's time does.
    """
    return argname if isinstance(val, bytes) and len(val) > LONGEST_NAME else None


def _shares_a_fixture(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    return any(fixture.scope == "module" for each in fixtures for fixture in each)


def _position_of_seed(item: pytest.Item) -> int:
    """Return which of the seeds of its test an item has; 0 if it has none."""
    call = getattr(item, "callspec", None)
    return int(call.indices.get("seed", 0)) if call else 0


@pytest.fixture(scope="session")
def long(request: pytest.FixtureRequest) -> bool:
    """Return whether the run was started with `--long`."""
    return bool(request.config.getoption("--long"))


CACHES = itertools.count()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a cache folder that is made once something is cached: most tests cache nothing."""
    monkeypatch.setenv(
        "TORCH_PROFILER_CACHE_DIR", str(tmp_path_factory.getbasetemp() / f"own_cache{next(CACHES)}")
    )


@pytest.fixture(autouse=True)
def _own_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let help and tables wrap alike, whatever terminal runs the tests."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(autouse=True)
def _own_native_switch() -> Iterator[None]:
    """A command allows the native reader in its process, which is that of all tests, and of what they start."""
    name = "TORCH_PROFILER_NATIVE"
    before = os.environ.get(name)
    yield
    if before is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = before


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return a folder with `traces/` and `oracle/`: real runs, which are not part of this project."""
    place = os.environ.get("TRACE_CORPUS")
    if not place:
        pytest.skip("TRACE_CORPUS is not set")
    return Path(place)


@pytest.fixture(scope="session")
def samples() -> Path:
    """Return the sample traces of this project."""
    return Path(__file__).resolve().parent.parent / "samples"
