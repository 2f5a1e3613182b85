"""Draw a screen: within the width of a terminal, or as plain lines for a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TextIO

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from torch_tb_profiler.base.format import format_ratio, replace_unprintable
from torch_tb_profiler.base.grammar import capitalize, plural, pluralize
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.cli._styles import shows_styles
from torch_tb_profiler.cli.screens.names import shorten_names
from torch_tb_profiler.cli.screens.screen import Column, Row, Screen, Table, format_value

GAP = "  "
"""Between two columns."""

MAX_SENTENCE_WIDTH = 110
"""Longest line of prose in characters: longer ones are hard to read, however wide the terminal is."""

MIN_FIRST_WIDTH, MIN_NAME_WIDTH = 24, 14
"""Fewest characters of a shortened name: in the first column, and in the others."""

EASY_NAME_WIDTH = 44
"""Characters up to which names get wider before bars do."""

TERMINAL_ROWS = (20, 10)
"""Most rows on a terminal without `--limit`: of the first table, and of each further one."""

_BAR_WIDTHS = ((12, False), (8, False), (8, True), (4, True))
"""Widths of bars that are tried in turn, and whether only the first column with a share keeps its bar."""

_NUMBER_AND_UNIT = lazy_regex(
    r"(\b[0-9][0-9,.]*) (?=(?:[nµm]s|s|[KMGT]iB|[KMG]?B(?:/s)?|[GT]FLOP(?:/s)?|tokens/s)\b)"
)
_TIE = "\ue000"
"""Stands for a space where no line may end: a no-break space counts as a space when text is wrapped."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"


class ScreenLayout(msgspec.Struct, frozen=True):
    """Where a screen is drawn.

    width  characters of a line; None: a pipe, whose lines are as long as they get
    bars   whether shares are bars
    wide   show hidden columns and full names, and let lines get longer than `width`
    limit  most rows of a table; 0: all; None: `TERMINAL_ROWS` of them on a terminal, all in a pipe
    """

    width: int | None
    bars: bool
    wide: bool = False
    limit: int | None = None

    @property
    def table_width(self) -> int | None:
        return None if self.wide else self.width

    @property
    def prose_width(self) -> int | None:
        return None if self.width is None else min(self.width, MAX_SENTENCE_WIDTH)

    def max_rows(self, is_first: bool) -> int | None:
        """Return the most rows of the first or a further table, or None for all."""
        if self.limit is not None:
            return self.limit or None
        return None if self.width is None else TERMINAL_ROWS[0 if is_first else 1]


class _PipedConsole(Console):
    """Leaves it to the command to end well when the reader of a pipe (head, less) has seen enough."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def draw_screen(screen: Screen, layout: ScreenLayout, stream: TextIO) -> None:
    """Print a screen to `stream`: colored on a terminal that shows colors, unless NO_COLOR is set."""
    console = _PipedConsole(
        file=stream,
        color_system="auto" if shows_styles(stream) else None,
        width=layout.width or 10_000,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )
    for index, sentence in enumerate(screen.sentences):
        _print_prose(console, Text(replace_unprintable(sentence), "bold" if index == 0 else ""), layout)
    _print_facts(console, screen.facts, layout)
    unknown: dict[str, list[str]] = {}
    tables = [table for table in screen.tables if table.rows]
    for index, table in enumerate(tables):
        console.print()
        if table.title:
            console.print(Text(table.title, "bold"))
        for title, reason in _print_table(console, table, layout, index == 0, screen):
            unknown.setdefault(reason, []).append(title)
    notes = [
        f"Unknown: {', '.join(dict.fromkeys(titles))}. {capitalize(reason)}." for reason, titles in unknown.items()
    ]
    notes += [f"How we know: {note}" for note in screen.notes]
    if notes:
        console.print()
    for note in notes:
        _print_prose(console, Text(replace_unprintable(note), "dim"), layout)


def _print_prose(console: Console, text: Text, layout: ScreenLayout) -> None:
    if layout.prose_width is None:
        console.print(text)
        return
    for line in wrap_prose(text.plain, layout.prose_width, console):
        console.print(Text(line, text.style))


def wrap_prose(sentence: str, width: int, console: Console) -> list[str]:
    """Return the lines of a sentence within `width` characters; a number stays on the line of its unit."""
    lines = Text(_NUMBER_AND_UNIT.sub(rf"\1{_TIE}", sentence)).wrap(console, width)
    return [line.plain.rstrip().replace(_TIE, " ") for line in lines]


def _print_facts(console: Console, facts: Sequence[tuple[str, str]], layout: ScreenLayout) -> None:
    """Print facts on as few lines as they fit on, none of them broken."""
    line = Text()
    for label, value in facts:
        fact = Text.assemble((replace_unprintable(label), "dim"), " ", replace_unprintable(value))
        if layout.prose_width is not None and fact.cell_len > layout.prose_width:
            if line:
                console.print(line)
                line = Text()
            _print_prose(console, fact, layout)
            continue
        if line and layout.prose_width is not None and line.cell_len + fact.cell_len + 3 > layout.prose_width:
            console.print(line)
            line = Text()
        line = Text.assemble(line, (" · ", "dim"), fact) if line else fact
    if line:
        console.print(line)


class _Block(NamedTuple):
    """A column as drawn: its texts, and the widths of values, percentages and bars (0: none)."""

    column: Column
    texts: list[str]
    percents: list[str]
    shares: list[float]
    value_width: int
    percent_width: int
    bar_width: int

    @property
    def width(self) -> int:
        return self.value_width + sum(1 + width for width in (self.percent_width, self.bar_width) if width)


def _print_table(
    console: Console, table: Table, layout: ScreenLayout, is_first: bool, screen: Screen
) -> Iterable[tuple[str, str]]:
    """Print a table; return (title, reason) of its columns that are left out as nothing is known."""
    shown = [column for column in table.columns if layout.wide or not column.hidden]
    known = [column for column in shown if _has_data(column, table.rows)]
    rows = table.rows[: layout.max_rows(is_first)]
    blocks = [_block(column, rows, layout) for column in known]
    left_out: list[_Block] = []
    if layout.table_width is not None:
        blocks, left_out = _fit(blocks, layout.table_width)
    console.print(_header(blocks))
    indent = len(GAP) + (blocks[0].width if len(blocks) > 1 else 0)
    has_detail = bool(table.detail) and all(column.key != table.detail for column in known)
    for index, row in enumerate(rows):
        console.print(_line(blocks, index))
        if has_detail and row.get(table.detail):
            _print_detail(console, str(row[table.detail]), indent, layout)
    note = _cut_note(table, len(rows), left_out)
    if note:
        _print_prose(console, Text(note, "dim"), layout)
    empty = [column for column in shown if column not in known]
    found = [(column, _reason(screen, column)) for column in empty]
    return [(column.title, reason) for column, reason in found if reason]


def _has_data(column: Column, rows: Sequence[Row]) -> bool:
    return any(row.get(column.key) not in (None, "", []) for row in rows)


def _reason(screen: Screen, column: Column) -> str | None:
    return screen.reasons.get(column.key) or screen.reasons.get(column.key.partition(".")[0])


def _block(column: Column, rows: Sequence[Row], layout: ScreenLayout) -> _Block:
    key = column.full if layout.wide and column.full else column.key
    values = [row.get(key) for row in rows]
    texts = [_text(column, row, value) for row, value in zip(rows, values, strict=True)]
    total = column.total or column.largest
    shares = [value / total if total and isinstance(value, (int, float)) else 0.0 for value in values]
    has_share = bool(total)
    is_ratio = column.kind == "ratio"
    percents = [
        format_ratio(share, _bounded(column, row).rounding) if value is not None else ""
        for share, value, row in zip(shares, values, rows, strict=True)
    ]
    has_percent = bool(column.total) and has_share and not is_ratio
    return _Block(
        column,
        texts,
        percents,
        shares,
        max(cell_len(column.title), *map(cell_len, texts)),
        max(map(len, percents)) if has_percent else 0,
        _BAR_WIDTHS[0][0] if has_share and layout.bars else 0,
    )


def _bounded(column: Column, row: Row) -> Column:
    """Return the column with the rounding of a row, whose value may be the most, or the least."""
    if column.limit and row[column.limit]:
        return replace(column, rounding="up")
    return replace(column, rounding="up" if row[column.bound] else "down") if column.bound else column


def _text(column: Column, row: Row, value: Any) -> str:
    shown = format_value(_bounded(column, row), value)
    if column.limit and row[column.limit] and value is not None:
        return f"up to {shown}"
    if not column.bound or value is None:
        return shown
    return f"{'up to' if row[column.bound] else 'at least'} {shown}"


def _fit(blocks: list[_Block], width: int) -> tuple[list[_Block], list[_Block]]:
    """Return (the blocks within `width`, those that don't fit): bars get shorter, then names, then columns go."""
    for bar_width, only_first in _BAR_WIDTHS:
        sized = _with_bars(blocks, bar_width, only_first)
        if _total_width(sized, EASY_NAME_WIDTH, EASY_NAME_WIDTH) <= width:
            return _grow_names(sized, width), []
    fitting: list[_Block] = []
    for block in sized:
        # A column further right may be narrow enough where this one isn't.
        if not fitting or _total_width([*fitting, block], MIN_FIRST_WIDTH, MIN_NAME_WIDTH) <= width:
            fitting.append(block)
    return _grow_names(fitting, width), [block for block in sized if block not in fitting]


def _with_bars(blocks: list[_Block], bar_width: int, only_first: bool) -> list[_Block]:
    """Return the blocks with bars of this width, the first one alone if `only_first`."""
    with_bar = [index for index, block in enumerate(blocks) if block.bar_width]
    widened = with_bar[:1] if only_first else with_bar
    return [block._replace(bar_width=bar_width if index in widened else 0) for index, block in enumerate(blocks)]


def _total_width(blocks: list[_Block], first: int, others: int) -> int:
    """Return the characters of a line whose names are cut to these widths."""
    widths = (_name_width(block, others if index else first) for index, block in enumerate(blocks))
    return sum(widths) + len(GAP) * (len(blocks) - 1)


def _name_width(block: _Block, width: int) -> int:
    """Return the width of a block whose names are cut to `width` characters; numbers are never cut."""
    return min(block.value_width, width) if block.column.is_text else block.width


def _grow_names(blocks: list[_Block], width: int) -> list[_Block]:
    """Return the blocks with names as wide as the rest leaves: narrow ones get all they need."""
    fitted = [
        block._replace(value_width=_name_width(block, MIN_NAME_WIDTH if index else MIN_FIRST_WIDTH))
        if block.column.is_text
        else block
        for index, block in enumerate(blocks)
    ]
    spare = max(width - sum(block.width for block in fitted) - len(GAP) * (len(fitted) - 1), 0)
    names = sorted(
        (index for index, block in enumerate(blocks) if block.column.is_text),
        key=lambda index: blocks[index].value_width,
    )
    for place, index in enumerate(names):
        least = fitted[index].value_width
        extra = min(blocks[index].value_width - least, spare // (len(names) - place))
        spare -= extra
        texts = shorten_names(blocks[index].texts, least + extra)
        fitted[index] = blocks[index]._replace(texts=texts, value_width=least + extra)
    return fitted


def _header(blocks: list[_Block]) -> Text:
    cells = []
    for block in blocks:
        title = _cut_end(block.column.title, block.value_width)
        cells.append(_pad(title, block.value_width, block.column.is_text).ljust(block.width))
    return Text(GAP.join(cells).rstrip(), "dim")


def _cut_end(title: str, width: int) -> str:
    return title if cell_len(title) <= width else set_cell_size(title, width - 1).rstrip() + "…"


def _line(blocks: list[_Block], index: int) -> Text:
    line = Text()
    for place, block in enumerate(blocks):
        line.append(GAP if place else "")
        line.append(_pad(block.texts[index], block.value_width, block.column.is_text))
        if block.percent_width:
            line.append(" " + block.percents[index].rjust(block.percent_width), "dim")
        if block.bar_width:
            line.append(" ")
            line.append(bar_text(block.shares[index], block.bar_width).ljust(block.bar_width), "blue")
    line.rstrip()
    return line


def _pad(text: str, width: int, is_text: bool) -> str:
    space = " " * (width - cell_len(text))
    return text + space if is_text else space + text


def bar_text(share: float, width: int) -> str:
    """Return a bar of `share` of `width` characters, in eighths of one."""
    full, rest = divmod(round(min(max(share, 0), 1) * width * 8), 8)
    return _EIGHTHS[8] * full + (_EIGHTHS[rest] if rest else "")


def _print_detail(console: Console, sentence: str, indent: int, layout: ScreenLayout) -> None:
    text = replace_unprintable(sentence)
    width = layout.prose_width
    for line in wrap_prose(text, width - indent, console) if width is not None else [text]:
        console.print(Text(" " * indent + line, "dim"))


def _cut_note(table: Table, shown: int, left_out: list[_Block]) -> str:
    parts = []
    if shown < len(table.rows):
        parts.append(f"{shown:,} of {plural(len(table.rows), table.noun)}; --limit 0 shows all.")
    if left_out:
        titles = ", ".join(block.column.title for block in left_out)
        count = len(left_out)
        noun = "1 column doesn't" if count == 1 else f"{count} {pluralize('column')} don't"
        parts.append(f"{noun} fit ({titles}); --wide shows all.")
    return " ".join(parts)
