"""Write the JSON Schema of a summary: `python -m torch_tb_profiler.summary.schema > docs/summary.schema.json`."""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import msgspec

from torch_tb_profiler.summary.payload import Summary


def clean_description(schema: dict[str, Any]) -> dict[str, Any]:
    """Return `schema` with its docstring indented as by Python 3.13, so that every Python writes the same file."""
    text = schema.get("description")
    return {**schema, "description": inspect.cleandoc(text)} if text else schema


def render_schema() -> str:
    """Return the schema of a summary as docs/summary.schema.json holds it."""
    schema = msgspec.json.schema(Summary)
    parts = {name: clean_description(part) for name, part in schema["$defs"].items()}
    return json.dumps({**schema, "$defs": parts}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render_schema())
