"""The REST surface: parse the request, ask the session, encode, map errors. Nothing else."""

from __future__ import annotations

from torch_tb_profiler.http.app import App

__all__ = ["App"]
