"""Tokens per second in words."""

from __future__ import annotations

from torch_tb_profiler.analyses.roofline.tokens import Tokens
from torch_tb_profiler.base.format import format_duration, format_number
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.views._shared.text import Phrase, Text, link, text


def tokens_sentence(tokens: Tokens | None) -> Text:
    """Nothing where the trace does not tell."""
    if tokens is None:
        return ()
    total = tokens.prompt + tokens.generating
    return text(
        "{tokens} went through the model in {duration}: {rate} tokens/s ({prompt} of prompts, {generating} to "
        "generate, by the names of {iterations}).",
        tokens=plural(total, "token"),
        duration=format_duration(tokens.duration_ns),
        rate=format_number(tokens.per_second),
        prompt=f"{tokens.prompt:,}",
        generating=f"{tokens.generating:,}",
        iterations=Phrase(plural(tokens.iterations, "iteration"), link("trace", event=tokens.event)),
    )
