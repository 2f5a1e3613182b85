"""JSON Schema as written into files that are committed."""

from __future__ import annotations

import inspect
from typing import Any


def clean_description(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its docstring indented as Python 3.13 and newer do, whichever Python runs."""
    text = schema.get("description")
    return {**schema, "description": inspect.cleandoc(text)} if text else schema
