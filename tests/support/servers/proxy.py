"""A proxy as notebook servers have: it serves a port under a prefix that the server behind it knows nothing of."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.waiting import PATIENCE


@contextmanager
def proxy(address: str, prefix: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (address of the proxy with its prefix, the paths outside of it that were asked for)."""
    outside: list[str] = []

    class ProxyHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(f"{prefix}/"):
                outside.append(self.path)
                self.send_error(404)
                return
            request = urllib.request.Request(f"{address}{self.path.removeprefix(prefix)}")
            for name in ("Accept", "Accept-Encoding", "If-None-Match"):
                if value := self.headers.get(name):
                    request.add_header(name, value)
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    self._pass_on(answer.status, answer.headers.items(), answer.read())
            except urllib.error.HTTPError as error:
                self._pass_on(error.code, error.headers.items(), error.read())

        def _pass_on(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
            with suppress(ConnectionError):  # the page has been closed meanwhile
                self.send_response(status)
                for name, value in headers:
                    if name.lower() not in ("connection", "content-length", "date", "server", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), ProxyHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{prefix}", outside
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)
