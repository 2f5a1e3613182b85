"""What a release consists of: one version, and archives that hold what they should and nothing else."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import msgspec
import pytest

from torch_tb_profiler.ingest.kineto.native.library import LIBRARY

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "torch_tb_profiler"
NAME = "torch_tb_profiler"
UNBUILT = (
    *(".git", ".venv*", "node_modules", "samples", "build", "dist", "*.egg-info"),
    *("__pycache__", ".*_cache", ".hypothesis"),
)
"""What lies in a checkout and is in no archive; other tests may be writing it while it is copied."""

READERS = {
    f"{NAME}/{folder}/native/{name}"
    for folder, library in (
        ("ingest/kineto", "events"),
        ("ingest/memory", "snapshot"),
        ("ingest/flight_recorder", "recorder"),
        ("session", "schedule"),
        ("session", "job"),
    )
    for name in (f"lib{library}.so", f"lib{library}.dylib", f"{library}.dll")
}
"""Compiled, not source."""

built = pytest.mark.xdist_group("archives")  # they are built once


def version() -> str:
    """Return the version of pyproject.toml, the only place that has it."""
    found = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert len(found) == 1
    return str(found[0])


def checkout(folder: Path) -> Path:
    """Return a copy without samples to build from: building writes beside the sources. The page is built."""
    return Path(shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*UNBUILT)))


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the source archive, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    source = checkout(tmp_path_factory.mktemp("source") / "project")
    build = [sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check", "--outdir", str(folder)]
    done = subprocess.run([*build, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wheels = list(folder.glob(f"{NAME}-{version()}-py3-none-*.whl"))
    assert len(wheels) == 1
    return folder / f"{NAME}-{version()}.tar.gz", wheels[0]


def files_below(folder: Path) -> set[str]:
    """Return what is shipped of a folder of the checkout."""
    paths = {path.relative_to(ROOT).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {path for path in paths if "__pycache__" not in path and "node_modules" not in path}


@built
@pytest.mark.slow
def test_the_wheel_holds_the_package_and_the_page(archives: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(archives[1]) as wheel:
        names = set(wheel.namelist())
    info = f"{NAME}-{version()}.dist-info"
    shipped = files_below(PACKAGE) - READERS
    about = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt"}
    page = {f"{NAME}/static/{each}" for each in ("index.js", "report/report.js", "report/report.css")}
    assert page | {f"{NAME}/py.typed", f"{NAME}/static/THIRD_PARTY_NOTICES.txt"} <= shipped
    assert names - READERS == shipped | {f"{info}/{name}" for name in about}


@built
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")
def test_the_wheel_holds_the_native_reader_of_its_platform(archives: tuple[Path, Path]) -> None:
    """And serves every Python there: its name says none."""
    with zipfile.ZipFile(archives[1]) as wheel:
        held = READERS & set(wheel.namelist())
    assert held == {
        f"{NAME}/ingest/kineto/native/{LIBRARY.file_name}",
        f"{NAME}/ingest/memory/native/{LIBRARY.file_name.replace('events', 'snapshot')}",
        f"{NAME}/ingest/flight_recorder/native/{LIBRARY.file_name.replace('events', 'recorder')}",
        f"{NAME}/session/native/{LIBRARY.file_name.replace('events', 'schedule')}",
        f"{NAME}/session/native/{LIBRARY.file_name.replace('events', 'job')}",
    }
    assert not archives[1].name.endswith("-any.whl")


@built
@pytest.mark.slow
def test_the_source_archive_holds_what_the_wheel_and_the_site_are_made_of(archives: tuple[Path, Path]) -> None:
    with tarfile.open(archives[0]) as source:
        names = {member.name.partition("/")[2] for member in source.getmembers() if member.isfile()}
    documents = {"README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff"}
    build = {"pyproject.toml", "setup.py", "MANIFEST.in", "mkdocs.yml", "scripts/site.py"}
    package = files_below(PACKAGE) - READERS | files_below(ROOT / "native")
    folders = package | files_below(ROOT / "docs") | files_below(ROOT / "fe")
    metadata = {name for name in names if name.startswith(f"{NAME}.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    assert names == folders | documents | build | metadata


@built
@pytest.mark.slow
def test_archives_are_fit_for_an_index(archives: tuple[Path, Path]) -> None:
    check = [sys.executable, "-W", "ignore", "-m", "twine", "check", "--strict", *map(str, archives)]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_changelog_begins_with_the_version() -> None:
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert first and first[1] == version()


def test_no_other_file_says_a_version() -> None:
    page = json.loads((ROOT / "fe" / "package.json").read_text("utf-8"))
    lock = json.loads((ROOT / "fe" / "package-lock.json").read_text("utf-8"))
    assert "version" not in page and "version" not in lock["packages"][""]
    assert "version" not in (ROOT / "CITATION.cff").read_text("utf-8").replace("cff-version", "")


def test_lock_files_name_no_registry() -> None:
    lock = (ROOT / "fe" / "package-lock.json").read_text("utf-8")
    assert "integrity" in lock and "resolved" not in lock


def test_the_citation_agrees_with_the_package() -> None:
    project = msgspec.toml.decode((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\ntitle: {project['name']}\n" in citation and f"\nlicense: {project['license']}\n" in citation
    names = [author["name"] for author in project["authors"]]
    assert names == re.findall(r"^  - name: (.*)$", citation, re.MULTILINE)
    assert "Development Status :: 5 - Production/Stable" in project["classifiers"]
