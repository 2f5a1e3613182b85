"""What the memory files beside a trace say in words."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.memory.snapshot import Allocator
from torch_tb_profiler.base.format import format_bytes, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.model.devices import device_name
from torch_tb_profiler.views._shared.text import Text, text


def snapshot_headline(held: Allocator) -> Text:
    """What the allocator of a device holds, and how much of it tensors use."""
    return text(
        "{device} holds {reserved}, {allocated} of it in use.",
        device=device_name("CUDA", held.device),
        reserved=format_bytes(held.reserved),
        allocated=format_bytes(held.allocated),
    )


def snapshot_details(held: Allocator) -> Text:
    """Blocks, what is cached, and the allocations that failed."""
    failed = held.out_of_memory
    return text(
        "{blocks} in {segments}; {free} cached for reuse, at most {largest} in one block{failed}.",
        blocks=plural(held.blocks, "block"),
        segments=plural(held.segments, "segment"),
        free=format_bytes(held.free),
        largest=format_bytes(held.largest_free),
        failed=f"; {plural(failed, 'allocation')} failed" if failed else "",
    )


def timeline_headline(categories: Sequence[str], peak_sizes: Sequence[int], peak: int) -> Text:
    """The peak of all categories together, and which of them is most of it then."""
    if peak <= 0:
        return text("The timeline holds no memory at any time.")
    size, category = max(zip(peak_sizes, categories, strict=True), key=lambda pair: pair[0])
    return text(
        "Memory peaks at {peak}; {share} of it is {category}.",
        peak=format_bytes(peak),
        share=format_ratio(size / peak),
        category=category,
    )
