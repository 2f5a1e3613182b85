from __future__ import annotations

import io

import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from torch_tb_profiler.http.responses import Attachment, safe_name


def request(method: str = "GET") -> Request:
    return Request(EnvironBuilder(method=method).get_environ())


def test_a_file_that_grew_is_sent_up_to_its_announced_length() -> None:
    stream = io.BytesIO(b"x" * 100_000 + b"grown")
    response = Attachment.of_file("t.json", 100_000, stream).response(request())
    assert len(response.get_data()) == response.content_length == 100_000
    response.close()
    assert stream.closed


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("rank 0.pt.trace.json", "rank_0.pt.trace.json"),
        ('a";x\r\nSet-Cookie: b', "a_x_Set-Cookie_b"),
        ("../../etc", "_.._etc"),
        ("…", "_"),
        ("..", "trace"),
    ],
)
def test_a_safe_name_has_no_special_characters(name: str, safe: str) -> None:
    assert safe_name(name) == safe
    assert "\n" not in Attachment(name, "application/json", ()).response(request()).headers["Content-Disposition"]
