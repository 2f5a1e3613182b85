"""Hangs on a terminal."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.cli.screens.screen import Column, Row, Screen, Table, sentences_of

_CALL = (Column("pending_name", "Is in", "text"), Column("pending_seq_id", "Number", "count"))
_LAST = (
    Column("last_name", "Last finished", "text"),
    Column("last_seq_id", "Its number", "count"),
    Column("entries", "Entries", "count", hidden=True),
    Column("lost", "Lost", "flag", hidden=True),
    Column("file", "Dump", "text", hidden=True),
)


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `HangsPayload`."""
    ranks = [
        Column("rank", "Rank", "count"),
        Column("role", "Role", "text"),
        Column("group", "Group", "text"),
        *_CALL,
        Column("waited_ns", "Waited"),
        Column("line", "Line", "text"),
        *_LAST,
        Column("problem", "Problem", "text"),
    ]
    groups = [
        Column("group_desc", "Group", "text", full="group"),
        Column("ranks", "Ranks", "text"),
        Column("first_pending", "Number", "count"),
        Column("pending_name", "First pending", "text"),
        Column("waiting", "Waiting", "text"),
        Column("missing", "Missing there", "text"),
        Column("waits_for", "Waits for", "text"),
    ]
    return Screen(
        sentences_of(payload, "headline", "explanation"),
        [(fact["title"], fact["text"]) for fact in payload["facts"]],
        [
            Table(ranks, payload["ranks"], "rank"),
            Table(_columns("Ruled out", "Evidence"), payload["ruled_out"], "explanation", detail="text"),
            Table(
                _columns("Innermost calls of the program", "Calls"),
                list(map(_stack, payload["stacks"])),
                "stack",
                detail="text",
            ),
            *([Table(groups, payload["groups"], "group", "Groups")] if len(payload["groups"]) > 1 else []),
        ],
        notes=payload["problems"],
    )


def _columns(title: str, text: str) -> list[Column]:
    """Return the columns of a table with a sentence below each row, which is a column with `--wide`."""
    return [Column("title", title, "text"), Column("text", text, "text", hidden=True)]


def _stack(stack: dict[str, Any]) -> Row:
    """Return a stack as a row: its frames without those of libraries, innermost first."""
    own = [frame for frame in stack["frames"] if not frame["library"]] or stack["frames"][:1]
    frames = [f"{frame['function']} ({frame['file'].rpartition('/')[2]}:{frame['line']})" for frame in own]
    return {"title": stack["title"], "text": " < ".join(frames)}
