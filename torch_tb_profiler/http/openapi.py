"""Build the OpenAPI document of the routes from the route table and the types of the bodies.

`python -m torch_tb_profiler.http.openapi` prints it; the page's TypeScript types are generated from it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from torch_tb_profiler.analyses.timeline import ExcerptRange
from torch_tb_profiler.http import bodies
from torch_tb_profiler.http.query import SELECTORS
from torch_tb_profiler.http.routes import ROUTES
from torch_tb_profiler.summary.schema import clean_description
from torch_tb_profiler.view import OF_PAIR, NoParams, PairView
from torch_tb_profiler.views import all_tabs, all_views

_FILE = {"description": "a trace file", "content": {"application/json": {}, "application/gzip": {}}}

_BASE_NAMES = {
    "type": "object",
    "required": ["run", "worker", "span"],
    "properties": {name: {"type": "string"} for name in ("run", "worker", "span")},
}

_REF = "#/components/schemas/{name}"


def build_document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of all routes, relative to the plugin's prefix."""
    views = all_views()
    route_bodies = [route.body for route in ROUTES if route.body not in (dict, bytes)]
    types: list[type] = [*route_bodies, bodies.ErrorBody, bodies.PendingBody, *(view.payload for view in views)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    ambiguous = [name for name in components if "." in name]
    if ambiguous:
        raise TypeError(f"two payload types share a name: {', '.join(ambiguous)}")
    refs = dict(zip(types, schemas, strict=True))
    names = {view.slug: refs[view.payload] for view in views}
    sections = {tab.view.slug: tab.section for tab in all_tabs()}
    paths: dict[str, Any] = {}
    for route in ROUTES:
        if route.params is None:
            continue  # views are added below, each with its own parameters
        answer = _FILE if route.body is bytes else _json(refs[route.body])
        responses = {"200": answer}
        if route.path == "/slice":
            responses["202"] = _json(refs[bodies.PendingBody])
        cut = ExcerptRange if route.path == "/slice" else NoParams
        parameters = _parameters([name for name in route.params if name not in cut.__struct_fields__], cut)
        operation = _operation(route.summary, parameters, responses, refs)
        paths[route.path] = {route.method.lower(): operation}
    for view in views:
        ready = {
            "type": "object",
            "required": ["state", "view", "run", "worker", "span", "loading", "base", "payload"],
            "properties": {
                "state": {"const": "ready"},
                **{name: {"type": "string"} for name in ("view", "run", "worker", "span")},
                "loading": {"type": "integer", "description": "files of a run that are not included yet"},
                "base": {
                    "description": "the trace that a pair is compared with",
                    "anyOf": [{"type": "null"}, _BASE_NAMES],
                },
                "payload": names[view.slug],
            },
        }
        responses = {"200": _json(ready), "202": _json(refs[bodies.PendingBody])}
        compared = OF_PAIR if isinstance(view, PairView) else ()
        parameters = _parameters((*SELECTORS, *compared), view.params)
        operation = _operation(f"The {view.title} view", parameters, responses, refs)
        section = sections.get(view.slug)
        paths[f"/view/{view.slug}"] = {"get": {**operation, "tags": [section]} if section else operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "torch-tb-profiler", "version": "1"},
        "servers": [{"url": "/data/plugin/pytorch_profiler"}],
        "paths": paths,
        "components": {"schemas": {name: clean_description(schema) for name, schema in components.items()}},
    }


def _parameters(names: Iterable[str], params: type[msgspec.Struct]) -> list[dict[str, Any]]:
    """Describe the query parameters: `names` of traces, and the fields of `params`."""
    described: list[dict[str, Any]] = [
        {"name": name, "in": "query", "schema": {"type": "string"}} for name in names
    ]
    for field in msgspec.structs.fields(params):
        parameter = {"name": field.name, "in": "query", "schema": msgspec.json.schema(field.type)}
        described.append({**parameter, "required": True} if field.required else parameter)
    return described


def _operation(
    summary: str, parameters: list[dict[str, Any]], responses: dict[str, Any], refs: dict[type, Any]
) -> dict[str, Any]:
    return {
        "summary": summary,
        "parameters": parameters,
        "responses": {**responses, "default": _json(refs[bodies.ErrorBody])},
    }


def _json(schema: Any) -> dict[str, Any]:
    return {"description": "", "content": {"application/json": {"schema": schema}}}


def render_document() -> str:
    """Return the document as it is committed."""
    return json.dumps(build_document(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render_document())
