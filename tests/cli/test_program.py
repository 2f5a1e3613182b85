"""The program itself: what it says about itself, and that it says so without loading the package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.traces import document, event
from tests.support.waiting import PATIENCE
from torch_tb_profiler.cli.main import COMMANDS, main
from torch_tb_profiler.ingest.kineto import native
from torch_tb_profiler.views import SLUGS, all_tabs

HEAVY = (
    "numpy",
    "msgspec",
    "pyarrow",
    "fsspec",
    "tensorboard",
    "torch_tb_profiler.view",
    "torch_tb_profiler.session",
)

PROGRAM = (
    "import sys; from torch_tb_profiler.cli import main\n"
    "try: main(sys.argv[1:])\n"
    f"finally: sys.stderr.write(' '.join(sorted(set({HEAVY!r}) & set(sys.modules))))"
)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--help"], "COMMAND"),
        (["--version"], f"torch-tb-profiler {version('torch-tb-profiler')}"),
        (["summary", "--help"], "--format"),
        (["diff", "--help"], "--fail-over"),
    ],
)
def test_help_and_version_import_nothing_heavy(arguments: list[str], shown: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert shown in re.sub(r"\s+", " ", done.stdout)
    assert done.stderr == ""


def run_large(code: str, arguments: list[str], folder: Path) -> str:
    """Run a program for which every trace is a large one, and return what it writes to standard error."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={
            **os.environ,
            "TORCH_PROFILER_CACHE_DIR": str(folder / "cache"),
            "TORCH_PROFILER_SMALL_FILE_BYTES": "16",
            "TORCH_PROFILER_BACKGROUND": "0",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stderr


def test_a_trace_is_shown_without_arrow_and_without_other_tabs(tmp_path: Path) -> None:
    """Importing them takes longer than reading 50 MB: the first time for the cache, and then for the table."""
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    (tmp_path / "a.pt.trace.json").write_bytes(document([event]))
    code = (
        "import sys; from torch_tb_profiler.cli import main; main(sys.argv[1:])\n"
        "names = [name.split('.')[2] for name in sys.modules if name.startswith('torch_tb_profiler.views.')]\n"
        "print('pyarrow' in sys.modules, *sorted(set(names)), file=sys.stderr)"
    )
    arguments = ["view", "overview", str(tmp_path / "a.pt.trace.json"), "--format", "table"]
    for _ in range(2):
        assert run_large(code, arguments, tmp_path).split() == ["False", "_shared", "overview"]
    assert list((tmp_path / "cache").glob("*.arrow"))


def test_the_overview_of_launched_kernels_imports_no_masked_arrays(tmp_path: Path) -> None:
    """Importing them takes longer than the analyses of a small trace; numpy does it for np.isin, for one."""
    events = [event("host user_annotation ProfilerStep#1 0 1000")]
    for number in range(50):
        events.append(event(f"host cuda_runtime cudaLaunchKernel {10 * number} 5 correlation={number + 1}"))
        events.append(event(f"gpu0 kernel kernel{number % 3} {10 * number + 6} 8 correlation={number + 1}"))
        # Rows far apart: numbers that lie close together are looked up in a table instead of sorted.
        events += [event(f"host cpu_op aten::add {10 * number + 6} 1")] * 40
    path = tmp_path / "a.pt.trace.json"
    path.write_bytes(document(events))
    code = (
        "import sys; from torch_tb_profiler.cli import main; main(sys.argv[1:])\n"
        "print('numpy' in sys.modules, 'numpy.ma' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "view", "overview", str(path)],
        env={**os.environ, "TORCH_PROFILER_CACHE_DIR": str(tmp_path / "cache"), "TORCH_PROFILER_BACKGROUND": "0"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stderr.split() == ["True", "False"]


def test_an_overview_imports_nothing_that_other_traces_and_other_files_need(tmp_path: Path) -> None:
    """Of a step with work of a device: what only an engine, a graph, a snapshot or a user's devices need."""
    events = [event("host user_annotation ProfilerStep#1 0 1000")]
    for number in range(50):
        events.append(event(f"host cpu_op aten::mm {10 * number} 9"))
        events.append(event(f"host cuda_runtime cudaLaunchKernel {10 * number + 1} 5 correlation={number + 1}"))
        events.append(event(f"gpu0 kernel gemm {10 * number + 6} 8 correlation={number + 1}"))
    path = tmp_path / "a.pt.trace.json"
    path.write_bytes(document(events))
    code = (
        "import sys, numpy, msgspec; before = {*sys.modules}\n"
        "from torch_tb_profiler.cli import main; main(sys.argv[1:])\n"
        "print(*{*sys.modules} - before, file=sys.stderr)"
    )
    modules = {*run_large(code, ["view", "overview", str(path)], tmp_path).split()}
    package = "torch_tb_profiler."
    assert f"{package}views.overview.build" in modules and f"{package}cache.arrow" in modules
    libraries = {
        "asyncio",
        "email",
        "hashlib",
        "http",
        "platformdirs",
        "random",
        "statistics",
        "tempfile",
        "tomllib",
    }
    parts = {
        f"{package}analyses.serving",
        f"{package}analyses.shared.origin_times",
        f"{package}ingest.kineto.part",
        f"{package}ingest.kineto.repair",
        f"{package}model.counters.measures",
        f"{package}model.hardware.catalog",
        f"{package}model.origins.alignment",
        f"{package}model.origins.origins",
        f"{package}model.snapshots",
        f"{package}session.answers.pair",
        f"{package}session.answers.run",
        f"{package}session.cache.packed",
        f"{package}views._shared.origins",
        f"{package}views._shared.serving",
    }
    assert modules & (libraries | parts) == set()


def test_the_help_imports_no_command() -> None:
    code = (
        "import sys; from torch_tb_profiler.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    modules = {*done.stderr.split()}
    assert "torch_tb_profiler.cli.main" in modules
    assert modules.isdisjoint(f"torch_tb_profiler.cli.{name.replace('-', '_')}" for name in COMMANDS)
    assert "torch_tb_profiler.base.settings" not in modules and "logging" not in modules


def test_a_kept_overview_imports_no_view_and_no_numpy(tmp_path: Path) -> None:
    log = tmp_path / "log" / "run"
    log.mkdir(parents=True)
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    (log / "worker.1.pt.trace.json").write_bytes(document([event]))
    environment = {
        **os.environ,
        "TORCH_PROFILER_CACHE_DIR": str(tmp_path / "cache"),
        "TORCH_PROFILER_SMALL_FILE_BYTES": "16",
    }
    code = f"{PROGRAM}; print(*sys.modules, file=sys.stderr)"
    answers, modules = [], []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code, "view", "overview", str(tmp_path / "log")],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
            env=environment,
        )
        answers.append(done.stdout)
        modules.append(set(done.stderr.split()))
    assert "numpy" in modules[0] and "torch_tb_profiler.session" in modules[-1]
    heavy = {"numpy", "pyarrow", "multiprocessing", "torch_tb_profiler.model.trace", "torch_tb_profiler.view"}
    heavy |= {"csv", "torch_tb_profiler.storage.remote", "torch_tb_profiler.ingest.gpu_metrics.nvidia_smi"}
    assert modules[-1] & heavy == set(), "an importer, say, that imports its parser before it is asked to parse"
    assert not [name for name in modules[-1] if name.startswith("torch_tb_profiler.views.")]
    assert len({*answers}) == 1, "what was kept is what was answered"


def test_a_command_knows_itself_alone_and_says_of_a_wrong_word_what_there_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def error_output(*arguments: str) -> str:
        with pytest.raises(SystemExit):
            main(arguments)
        return capsys.readouterr().err

    assert "unrecognized arguments: --nothing" in error_output("list", "log", "--nothing")
    assert "usage: torch-tb-profiler [-h] [--version] COMMAND" in error_output("list", "log", "--nothing")
    wrong = error_output("lst", "log")
    assert all(name in wrong for name in COMMANDS)


def test_a_command_that_works_imports_what_it_needs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "list", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert "torch_tb_profiler.session" in done.stderr


def test_the_module_is_the_program() -> None:
    command = [sys.executable, "-m", "torch_tb_profiler", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    reader = native.describe_state()
    assert done.stdout == f"torch-tb-profiler {version('torch-tb-profiler')}\nnative reader: {reader}\n"


def test_the_slugs_in_the_help_are_those_of_the_views() -> None:
    assert tuple(tab.slug for tab in all_tabs()) == SLUGS


def test_a_pipe_of_another_code_page_gets_utf8(tmp_path: Path) -> None:
    (tmp_path / "w.pt.trace.json").write_bytes(document([event("host cpu_op −名 0 10")]))
    command = [sys.executable, "-m", "torch_tb_profiler", "view", "operators", str(tmp_path), "--format", "table"]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True, env=environment)
    assert "−名" in done.stdout.decode("utf-8")


@pytest.mark.parametrize(
    ("arguments", "code"), [(["list", "."], 0), (["view", "overview", "gone"], 1), (["lst"], 2), (["--help"], 0)]
)
def test_the_program_ends_as_if_python_freed_everything(arguments: list[str], code: int, tmp_path: Path) -> None:
    (tmp_path / "a.pt.trace.json").write_bytes(document([event("host cpu_op aten::add 0 5")]))
    environment = {**os.environ, "TORCH_PROFILER_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.getcwd()}
    freeing = "import sys; from torch_tb_profiler.cli import main; sys.exit(main())"
    ended, freed = (
        subprocess.run(
            [sys.executable, *program, *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=tmp_path,
            env=environment,
        )
        for program in (["-m", "torch_tb_profiler"], ["-c", freeing])
    )
    assert ended.returncode == code
    assert (ended.returncode, ended.stdout, ended.stderr) == (freed.returncode, freed.stdout, freed.stderr)


@pytest.mark.parametrize(("end", "code"), [("return 3", 3), ("raise ValueError('no answer')", 1)])
def test_the_program_waits_for_threads_and_calls_what_is_registered(end: str, code: int) -> None:
    lines = (
        "import atexit, sys, threading",
        "from torch_tb_profiler.cli import run",
        "def main():",
        "    at_work = threading.Event()",
        "    threading.Thread(target=lambda: (at_work.wait(), print('thread'))).start()",
        "    atexit.register(print, 'registered')",
        "    at_work.set()",
        f"    {end}",
        "sys.modules['torch_tb_profiler.cli.main'].main = main",
        "run()",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == code
    assert done.stdout.split() == ["thread", "registered"]
    assert ("no answer" in done.stderr) == (code == 1)


def test_a_reader_that_has_seen_enough_is_no_trouble(tmp_path: Path) -> None:
    """As `head` does: it closes the pipe before all is written."""
    (tmp_path / "a.pt.trace.json").write_bytes(document([event("host cpu_op aten::add 0 5")]))
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "torch_tb_profiler", "list", str(tmp_path)],
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
