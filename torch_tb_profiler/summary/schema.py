"""The JSON Schema of a summary: `python -m torch_tb_profiler.summary.schema > docs/summary.schema.json`."""

from __future__ import annotations

import json
import sys

import msgspec

from torch_tb_profiler.base.schema import clean_description
from torch_tb_profiler.summary.payload import Summary


def render() -> str:
    """The schema as committed."""
    schema = msgspec.json.schema(Summary)
    parts = {name: clean_description(part) for name, part in schema["$defs"].items()}
    return json.dumps({**schema, "$defs": parts}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())
