"""The REST surface: parse the request, query the session, encode the answer, and map errors to statuses."""

from __future__ import annotations

from torch_tb_profiler.http.app import App

__all__ = ["App"]
