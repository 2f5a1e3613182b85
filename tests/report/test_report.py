"""Reports: the same answers as over HTTP, a size that is kept, names that stay text."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from tests.support.page import draw_training
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli import main
from torch_tb_profiler.cli.report import MAX_BYTES
from torch_tb_profiler.http import App
from torch_tb_profiler.report import ReportInfo, collect_contents, render_page
from torch_tb_profiler.session import Root, Session
from torch_tb_profiler.views import SLUGS

HOSTILE = "</script><script>alert(1)</script><!-- ]]> \u2028 & '\" \U0001f600"


def embedded_data(text: str) -> dict[str, Any]:
    """Return what the page of a report reads."""
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.DOTALL)
    assert found
    report: dict[str, Any] = json.loads(found[1])
    return report


def answers(report: dict[str, Any]) -> dict[tuple[str, str], tuple[int, Any]]:
    """Return the answers in a report: (path, parameters as sorted JSON) -> (status, body)."""
    return {
        (path, json.dumps(params, sort_keys=True)): (
            report["answers"][number][0],
            json.loads(gzip.decompress(base64.b64decode(report["answers"][number][1]))),
        )
        for path, params, number in report["entries"]
    }


def write_report(folder: Path, path: Path, *options: str) -> str:
    output = folder / "report.html"
    assert main(["report", str(path), "-o", str(output), *options]) == 0
    return output.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "sample",
    [
        "data_loading_fixed",
        "ddp",
        "lightning",
        "simulated_8_h100_late_rank",
        "transformer",
    ],
)
def test_a_report_of_each_sample_is_small_and_answers_every_tab(
    samples: Path, tmp_path: Path, sample: str
) -> None:
    text = write_report(tmp_path, samples / sample)
    assert len(text.encode()) < MAX_BYTES / 2
    report = embedded_data(text)
    names = report["recordings"][0]
    found = answers(report)
    for slug in SLUGS:
        params = (
            {"run": names["run"], "span": names["span"]} if slug in ("distributed", "hangs", "overlap") else names
        )
        status, body = found[f"view/{slug}", json.dumps(params, sort_keys=True)]
        assert (status, bool(body.get("payload"))) == (200, True) or body["error"]["message"], slug


def test_a_report_of_snapshots_alone_shows_one_with_its_moments_and_all_ranks(
    samples: Path, tmp_path: Path
) -> None:
    report = embedded_data(write_report(tmp_path, samples / "simulated_out_of_memory", "--worker", "rank2"))
    names, found = report["recordings"][0], answers(report)
    assert names["worker"] == "rank2"

    def ask(slug: str, **params: str) -> Any:
        status, body = found[f"view/{slug}", json.dumps({**names, **params}, sort_keys=True)]
        assert status == 200, body
        return body["payload"]

    snapshot = ask("memory/snapshot", file="2")
    shown = {"file": "2", "device": str(snapshot["device"])}
    assert ask("memory/map", **shown)["total_segments"] == snapshot["total_segments"]
    for entry in (snapshot["peak_entry"], snapshot["out_of_memory"][-1]["entry"]):
        assert ask("memory/instant", **shown, limit="100", entry=str(entry))["entry"] == entry
    assert ask("memory/instant", **shown, limit="100")["entry"] is None
    job = json.dumps({"run": names["run"], "span": names["span"]}, sort_keys=True)
    assert len(found["view/memory/ranks", job][1]["payload"]["rows"]) == 4
    shown_files = [params["file"] for path, params, _ in report["entries"] if path == "view/memory/snapshot"]
    assert shown_files == ["2", "0", "1", "3"]
    listed = found["workers", json.dumps({"run": names["run"]})][1]["memory_files"]
    assert [str(file["file"]) for file in listed] == sorted(shown_files), "the page offers what the report holds"
    status, body = found["view/overview/preview", json.dumps(names, sort_keys=True)]
    assert status == 404 and "records only the allocator" in body["error"]["message"]


def test_a_report_offers_only_the_memory_files_that_it_holds(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[collect_contents.__module__], "MAX_ROWS", 1)
    report = embedded_data(write_report(tmp_path, samples / "simulated_out_of_memory", "--worker", "rank2"))
    listed = answers(report)["workers", json.dumps({"run": report["recordings"][0]["run"]})][1]["memory_files"]
    assert [file["file"] for file in listed] == [0, 2]


def test_answers_are_those_of_the_routes(samples: Path, tmp_path: Path) -> None:
    report = embedded_data(write_report(tmp_path, samples / "ddp"))
    with Session([Root(str(samples / "ddp"))], Settings.from_environment()) as session:
        session.scan()
        session.view("distributed", wait=True)
        client = Client(App(session))
        compared = 0
        for (path, params), (status, body) in answers(report).items():
            if path.startswith("view/") and not path.startswith("view/trace/"):
                response = client.get(f"/{path}", query_string=json.loads(params))
                assert (response.status_code, response.json) == (status, body), path
                compared += 1
    assert compared > 50


def test_a_comparison_embeds_both_sides_and_their_diff(samples: Path, tmp_path: Path) -> None:
    slow, fixed = samples / "data_loading_slow", samples / "data_loading_fixed"
    report = embedded_data(write_report(tmp_path, fixed, "--compare", str(slow)))
    candidate, base = report["recordings"]
    assert (candidate["run"], base["run"]) == ("candidate/data_loading_fixed", "base/data_loading_slow")
    found = answers(report)
    explicit = {**candidate, **{f"base_{name}": value for name, value in base.items()}}
    _, body = found["view/diff", json.dumps(explicit, sort_keys=True)]
    assert body["base"] == base and found["view/diff", json.dumps(candidate, sort_keys=True)][1] == body
    for names in (candidate, base):
        assert found["view/operators", json.dumps(names, sort_keys=True)][1]["run"] == names["run"]
    runs = [run["name"] for run in found["runs", "{}"][1]["runs"]]
    assert runs == [candidate["run"], base["run"]]  # the page opens the first


def test_what_is_too_large_is_left_out_and_named(samples: Path) -> None:
    with Session([Root(str(samples / "ddp"))], Settings.from_environment()) as session:
        session.scan()
        answer = session.view("overview", wait=True)
        names = answer.run, answer.worker, answer.span
        whole = collect_contents(session, names, None, 10**9)
        small = collect_contents(session, names, None, 60_000)
    assert sum(len(body) for _, body in small.answers) < 60_000
    included = {(path, str(params)) for path, params, _ in small.entries}
    assert included < {(path, str(params)) for path, params, _ in whole.entries}
    assert ("view/overview", str(dict(zip(("run", "worker", "span"), names, strict=True)))) in included
    assert any("too large" in text for text in small.left_out)
    assert not any("too large" in text for text in whole.left_out)


@pytest.mark.parametrize(("sample", "serves"), [("serving", True), ("ddp", False)])
def test_a_report_of_an_engine_says_what_of_its_iterations_it_leaves_out(
    samples: Path, sample: str, serves: bool
) -> None:
    with Session([Root(str(samples / sample))], Settings.from_environment()) as session:
        session.scan()
        answer = session.view("overview", wait=True)
        contents = collect_contents(session, (answer.run, answer.worker, answer.span), None, 60_000)
    assert any(text.startswith("Serving: sums") for text in contents.left_out) is serves


def test_names_stay_text(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "w.pt.trace.json").write_bytes(draw_training(kernel=HOSTILE))
    text = write_report(tmp_path, tmp_path / "log")
    assert text.count("</script") == 2
    kernels = answers(embedded_data(text))[
        "view/kernels", json.dumps(embedded_data(text)["recordings"][0], sort_keys=True)
    ]
    assert kernels[1]["payload"]["rows"][0]["name"] == HOSTILE


def test_the_page_may_run_its_own_script_and_ask_nobody(tmp_path: Path, samples: Path) -> None:
    text = write_report(tmp_path, samples / "ddp")
    policy = html.unescape(re.findall(r'Content-Security-Policy" content="([^"]*)"', text)[0])
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    script = text.rpartition("</script>\n<script>")[2].rpartition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert rules["default-src"] == "'none'" and rules["script-src"] == f"'sha256-{digest}'"
    assert not {"connect-src", "frame-src", "worker-src"} & set(rules)
    assert "react" in text and "MIT" in text  # the notices


def test_a_title_is_escaped(samples: Path) -> None:
    with Session([Root(str(samples / "ddp"))], Settings.from_environment()) as session:
        session.scan()
        answer = session.view("overview", wait=True)
        contents = collect_contents(session, (answer.run, answer.worker, answer.span), None, 10_000)
    text = render_page(contents, ReportInfo("today", "1", HOSTILE, HOSTILE), HOSTILE)
    assert f"<title>{html.escape(HOSTILE)}</title>" in text
    assert embedded_data(text)["command"] == HOSTILE
    assert text.count("</script") == 2


def test_a_trace_that_cannot_be_read_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "w.pt.trace.json").write_bytes(b"")
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "report.html")]) == 1
    assert "the file is empty" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
