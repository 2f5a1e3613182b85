"""What is shipped beside the code: the notices of the libraries in the page."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

FE = Path(__file__).resolve().parent.parent / "fe"

FONTS = {"Inter", "JetBrains-Mono"}

TITLE = re.compile(r"^(\S+) (\S+) \((.+)\)\n-+$", re.MULTILINE)


def notices() -> str:
    """Return the file as installed: from the wheel where the wheel is tested."""
    return (files("torch_tb_profiler") / "static" / "THIRD_PARTY_NOTICES.txt").read_text(encoding="utf-8")


def test_the_notices_name_each_bundled_library_and_no_tool() -> None:
    bundled = {name: version for name, version, _ in TITLE.findall(notices())}
    wanted = json.loads((FE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert set(wanted) <= set(bundled)
    packages = json.loads((FE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    shipped = {
        (path.rpartition("node_modules/")[2], each["version"])
        for path, each in packages.items()
        if path and not each.get("dev")
    }
    assert {item for item in bundled.items() if item[0] not in FONTS} <= shipped
    assert set(bundled) >= FONTS


def test_the_notices_hold_the_licenses_texts() -> None:
    text = notices()
    sections = TITLE.split(text)[1:]
    for name, license_name, body in zip(sections[::4], sections[2::4], sections[3::4], strict=True):
        assert license_name in ("0BSD", "BSD-3-Clause", "ISC", "MIT", "OFL-1.1"), name
        assert "copyright" in body.lower() or "Author: " in body, name
