"""The HTML file of a report: the page as one script and one style sheet, and the answers it draws."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from dataclasses import asdict, dataclass

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.http.page import STATIC_FOLDER
from torch_tb_profiler.report.collect import Contents


@dataclass(frozen=True)
class ReportInfo:
    """What a report says about itself.

    made     when it was written
    version  of this package
    root     the folder of the traces
    command  opens that folder in TensorBoard
    """

    made: str
    version: str
    root: str
    command: str


def render_frame(title: str) -> tuple[str, str]:
    """Return the HTML before the answers of a report and the HTML after them.

    Raises NotFoundError if the page is not built.
    """
    style, script = _read_asset("report/report.css"), _escape_script(_read_asset("report/report.js"))
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
        "<noscript>This report needs JavaScript, which is turned off in this browser.</noscript>\n"
        '<script type="application/json" id="report">'
    )
    return head, f"</script>\n<script>{script}</script>\n</body>\n</html>\n"


def render_page(contents: Contents, info: ReportInfo, title: str) -> str:
    """Return a report as HTML. Names from a trace stay text, whatever characters they hold."""
    head, tail = render_frame(title)
    recordings = [{"run": run, "worker": worker, "span": span} for run, worker, span in contents.recordings]
    report = {
        **asdict(info),
        "left_out": contents.left_out,
        "recordings": recordings,
        "entries": contents.entries,
        "answers": contents.answers,
    }
    # ASCII without "<" can neither end a script in HTML nor a line in JavaScript.
    return head + json.dumps(report, separators=(",", ":")).replace("<", "\\u003c") + tail


def _notices() -> str:
    """Return the licenses of the page's dependencies as the text of a comment."""
    return _read_asset("THIRD_PARTY_NOTICES.txt").replace("--", "- -")


def _read_asset(name: str) -> str:
    path = STATIC_FOLDER / name
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        hint = "the page is not built: run `python setup.py build_fe`"
        raise NotFoundError(f"there is no page file {path.name!r}", hint=hint) from error


def _escape_script(script: str) -> str:
    """Escape what would end a script in HTML; it occurs only in string literals, whose meaning stays the same."""
    return script.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")
