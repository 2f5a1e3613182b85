"""README's commands that install and start it, as they stand there, in an environment of their own."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import urllib.request
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.support.servers import storage
from tests.support.servers.tensorboard import read_json, start_tensorboard
from tests.support.waiting import PATIENCE, until
from tests.test_documentation import ROOT, code_blocks
from tests.test_release import checkout as new_checkout

TRY, INSTALL, BUCKET = (
    next(block for block in code_blocks((ROOT / "README.md").read_text("utf-8"), "sh") if begin in block)
    for begin in ("python3 -m venv", "pip wheel", "s3://")
)
ENVIRONMENT = Path(".venv/bin")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("archives"),
    pytest.mark.skipif(sys.platform == "win32", reason="README's commands are those of a POSIX shell"),
]


def wheel(name: str, folder: Path) -> None:
    """Pack a package of this environment as the wheel that it was installed from, which an index would give."""
    found = distribution(name)
    inside = [file for file in found.files or () if ".." not in file.parts and file.suffix != ".pyc"]
    info = f"{name}-{found.version}.dist-info"
    record = []
    with zipfile.ZipFile(folder / f"{name}-{found.version}-py3-none-any.whl", "w") as archive:
        for file in inside:
            if file.parent.name == info and file.name not in ("METADATA", "WHEEL", "entry_points.txt"):
                continue
            content = Path(str(found.locate_file(file))).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{file.as_posix()},sha256={digest},{len(content)}\n")
            archive.writestr(file.as_posix(), content)
        archive.writestr(f"{info}/RECORD", "".join([*record, f"{info}/RECORD,,\n"]))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    folder = new_checkout(tmp_path_factory.mktemp("readme") / "project")
    (folder / "samples").mkdir()
    for run in ("data_loading_slow", "ddp"):
        (folder / "samples" / run).symlink_to(samples / run)
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which packages come from a folder and their dependencies from this environment."""
    wheels = tmp_path_factory.mktemp("wheels")
    for name in ("pip", "tensorboard"):
        wheel(name, wheels)
    overrides = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip takes that for "without isolation"
        "PIP_FORCE_REINSTALL": "1",
        "PIP_NO_COMPILE": "1",
        "TORCH_PROFILER_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
    }
    return {**os.environ, **overrides}


@pytest.fixture(scope="module")
def activated(checkout: Path, environment: dict[str, str]) -> dict[str, str]:
    """Return the environment as after `. .venv/bin/activate`."""
    return {**environment, "PATH": f"{checkout / ENVIRONMENT}{os.pathsep}{environment['PATH']}"}


def on_any_port(block: str) -> str:
    """Run a command as written, but on any port: another TensorBoard on this machine may want the same one."""
    assert block.splitlines()[-1].rstrip().endswith("samples")
    return f"{block.rstrip()} --port 0"


@pytest.fixture(scope="module")
def tried(checkout: Path, environment: dict[str, str]) -> Iterator[str]:
    """Yield the address that README's first command prints."""
    with start_tensorboard(["bash", "-ec", on_any_port(TRY)], environment, checkout) as address:
        yield address


def runs(address: str) -> list[str]:
    plugin = f"{address}/data/plugin/pytorch_profiler"
    with urllib.request.urlopen(f"{plugin}/index.js", timeout=PATIENCE) as page:
        assert len(page.read()) > 100
    listed = until(lambda: read_json(f"{plugin}/runs"), lambda answer: not answer["scanning"])
    return [run["name"] for run in listed["runs"]]


def source(checkout: Path) -> str:
    """Return what the environment's package was installed from."""
    (record,) = checkout.glob(".venv/lib/python*/site-packages/torch_tb_profiler-*.dist-info/direct_url.json")
    return str(json.loads(record.read_text("utf-8"))["url"])


def test_one_command_shows_the_samples(tried: str, checkout: Path) -> None:
    assert runs(tried) == ["data_loading_slow", "ddp"]
    assert source(checkout) == checkout.as_uri()


def test_a_wheel_is_made_in_a_checkout_and_installed(
    tried: str, checkout: Path, activated: dict[str, str]
) -> None:
    done = subprocess.run(["bash", "-ec", INSTALL], cwd=checkout, env=activated, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = checkout.glob("dist/*.whl")
    assert source(checkout) == made.as_uri()


def test_a_bucket_is_shown(tried: str, checkout: Path, activated: dict[str, str], samples: Path) -> None:
    trace = next((samples / "data_loading_slow").iterdir())
    with storage.s3(folder="samples") as place:
        place.put(f"a_run/{trace.name}", trace.read_bytes())
        assert "http://localhost:9000" in BUCKET
        block = BUCKET.replace("http://localhost:9000", place.environ["S3_ENDPOINT"])
        with start_tensorboard(["bash", "-ec", on_any_port(block)], activated, checkout) as address:
            assert runs(address) == ["a_run"]
            ready = f"{address}/data/plugin/pytorch_profiler/view/overview?run=a_run"
            assert until(lambda: read_json(ready), lambda answer: answer["state"] == "ready")["payload"]["steps"]
