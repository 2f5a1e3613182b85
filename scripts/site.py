"""What the site holds beyond docs/: pages made from the code, and the guide for contributors.

A hook of MkDocs (`mkdocs.yml`). Links to files of the checkout that are no page become their names.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import torch_tb_profiler
from torch_tb_profiler.http.openapi import build_document

ROOT = Path(__file__).resolve().parent.parent

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    pages = {
        "architecture.md": (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        "reference/python.md": python_reference(),
        "reference/http.md": http_reference(),
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace links that leave docs/ by their text, because the site has no such pages."""
    here = Path(config.docs_dir) / page.file.src_uri

    def unlinked(link: re.Match[str]) -> str:
        target = (here.parent / link[2]).resolve()
        return link[0] if target.is_relative_to(config.docs_dir) else link[1]

    return LINK.sub(unlinked, markdown)


def python_reference() -> str:
    """Return what the package exports, where it is defined."""
    homes = []
    for name in torch_tb_profiler.__all__:
        thing = getattr(torch_tb_profiler, name)
        homes.append(f"{thing.__module__}.{thing.__qualname__}")
    members = "\n\n".join(f"::: {home}" for home in homes)
    return f"# Python API\n\n`import torch_tb_profiler` gives these names.\n\n{members}\n"


def http_reference() -> str:
    """Return the routes of the OpenAPI document: parameters with defaults, and the fields of the answers."""
    described = build_document()
    lines = [
        "# HTTP routes",
        "",
        "Made from the OpenAPI document of the routes; [HTTP API](../http_api.md) says how to ask.",
        "",
    ]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            lines += [f"## {method.upper()} `{path}`", "", operation["summary"] + ".", ""]
            lines += _parameters(operation["parameters"])
    lines += ["## Answers", ""]
    for name, schema in described["components"]["schemas"].items():
        lines += _schema(name, schema)
    return "\n".join(lines) + "\n"


def _parameters(parameters: list[dict[str, Any]]) -> list[str]:
    if not parameters:
        return []
    rows = [f"| `{each['name']}` | {_type(each['schema'])} | {_default(each)} |" for each in parameters]
    return ["| parameter | type | default |", "|---|---|---|", *rows, ""]


def _default(parameter: dict[str, Any]) -> str:
    if parameter.get("required"):
        return "required"
    default = parameter["schema"].get("default")
    return "" if default in (None, "") else f"`{default}`"


def _schema(name: str, schema: dict[str, Any]) -> list[str]:
    fields = [f"| `{field}` | {_type(each)} |" for field, each in schema.get("properties", {}).items()]
    text = schema.get("description", "")
    table = ["| field | type |", "|---|---|", *fields, ""] if fields else []
    return [f"### {name}", "", *(["```text", text, "```", ""] if text else []), *table]


def _type(schema: dict[str, Any]) -> str:
    """Describe a JSON schema in a reader's words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}" if schema.get("items") else "list"
    return str(schema.get("type", "any"))
