"""The file of a report: the page as one script and one style sheet, and the answers it draws."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.http.static import STATIC_FOLDER
from torch_tb_profiler.report.contents import Contents


@dataclass(frozen=True)
class About:
    """made: when; version: of this package; root: where the traces lie; command: opens all of them."""

    made: str
    version: str
    root: str
    command: str


def frame(title: str) -> tuple[str, str]:
    """What stands before the answers of a report and after them.

    Raises NotFoundError if the page is not built.
    """
    style, script = _built("report.css"), _for_html(_built("report.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "font-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{html.escape(title)}</title>\n<!--\n{_notices()}\n-->\n<style>{style}</style>\n</head>\n<body>\n"
        "<noscript>This report is drawn by a script, which this browser does not run.</noscript>\n"
        '<script type="application/json" id="report">'
    )
    return head, f"</script>\n<script>{script}</script>\n</body>\n</html>\n"


def page(contents: Contents, about: About, title: str) -> str:
    """A report as HTML. Names from a trace stay text whatever they hold."""
    head, tail = frame(title)
    recordings = [{"run": run, "worker": worker, "span": span} for run, worker, span in contents.recordings]
    report = {
        **asdict(about),
        "left_out": contents.left_out,
        "recordings": recordings,
        "entries": contents.entries,
        "answers": contents.answers,
    }
    # Of what ends a script in HTML or a line in JavaScript, nothing is left: ASCII, and no "<".
    return head + json.dumps(report, separators=(",", ":")).replace("<", "\\u003c") + tail


def _built(name: str) -> str:
    return _text(STATIC_FOLDER / "report" / name)


def _notices() -> str:
    """The licenses of what the page is made of, as the text of a comment."""
    return _text(STATIC_FOLDER / "THIRD_PARTY_NOTICES.txt").replace("--", "- -")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        hint = "the page is not built: run `python setup.py build_fe`"
        raise NotFoundError(f"there is no page file {path.name!r}", hint=hint) from error


def _for_html(script: str) -> str:
    """A script as it may stand in HTML; in its texts, which alone hold such, it means the same."""
    return script.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")
