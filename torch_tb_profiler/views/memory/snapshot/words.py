"""Sentences on a snapshot's failed allocations: why memory ran out, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch_tb_profiler.analyses.memory.devices import MAX_CONTEXT_BYTES
from torch_tb_profiler.analyses.memory.snapshot.categories import (
    ACTIVATIONS,
    CATEGORIES,
    COMMUNICATION,
    GRADIENTS,
    GRAPHS,
    KV_CACHE,
    OPTIMIZER,
    PARAMETERS,
    UNKNOWN,
    WORKSPACE,
)
from torch_tb_profiler.analyses.memory.snapshot.failures import SnapshotFailure
from torch_tb_profiler.analyses.memory.snapshot.growth import SiteGrowth, SnapshotGrowth
from torch_tb_profiler.analyses.memory.snapshot.modules import program_frame
from torch_tb_profiler.base.format import format_bytes, shorten_middle
from torch_tb_profiler.base.grammar import agree, plural
from torch_tb_profiler.model.devices import device_name
from torch_tb_profiler.views._shared.text import Text, sentences, text
from torch_tb_profiler.views._shared.wording import used_more

MAX_FRAME_LENGTH = 80
"""Most characters of a stack frame in a sentence."""

MIN_TOP_SHARE = 0.1
"""Least share of the memory in use that makes a category worth a sentence, and of holes that makes others so."""

SMALL_DEVICE_BYTES = 8 << 30
"""Few GPUs that train have less memory than this."""

_REMEDIES = {
    ACTIVATIONS: "Checkpoint activations or use a smaller batch or sequence: activations hold {size}.",
    OPTIMIZER: "Shard or offload the optimizer's state (FSDP, ZeRO, 8-bit optimizers): it holds {size}.",
    PARAMETERS: "Shard or quantize the parameters: they hold {size}.",
    GRADIENTS: "Shard the gradients, or free them with `zero_grad(set_to_none=True)`: backward holds {size}.",
    KV_CACHE: "Make the KV cache smaller (fewer or shorter sequences): it holds {size}.",
    COMMUNICATION: "Limit how many layers are gathered ahead: communication buffers hold {size}.",
    GRAPHS: "Capture fewer CUDA graphs, or let them share a pool: their pools hold {size}.",
    WORKSPACE: (
        "Limit the workspaces of libraries (`CUBLAS_WORKSPACE_CONFIG`, `torch.backends.cudnn.benchmark = False`): "
        "they hold {size}."
    ),
}
"""What makes a category smaller; `size` is what it holds."""

_OBSTACLES = (
    "Release CUDA graphs that are no longer replayed, or let them share a pool: {size} are unused in other pools.",
    "Allocate on one stream: {size} are unused in segments of other streams.",
    "Allocate fewer tensors of the other size class (up to or above 1 MiB): {size} are unused in its segments.",
)
"""What makes use of pieces of other pools, other streams, and the other size class; `size` is what is unused."""


def site_name(frames: Sequence[str]) -> str | None:
    """Return the frame of the program's own code as a sentence names it; None without frames."""
    frame = program_frame(frames)
    return None if frame is None else shorten_middle(frame, MAX_FRAME_LENGTH)


def verdict(
    device: int, failure: SnapshotFailure, categories: Mapping[str, int], top_site: tuple[str, int] | None
) -> Text:
    """Return why an allocation failed: the request, what is free, and who holds the memory.

    categories  of what is in use, most bytes first
    top_site    the frame that holds most as `site_name` spells it, and its bytes
    """
    request = text(
        "Out of memory on {device}: {size} requested, {free}.",
        device=device_name("CUDA", device),
        size=format_bytes(failure.size),
        free="free memory not recorded"
        if failure.device_free is None
        else f"{format_bytes(failure.device_free)} free",
    )
    return sentences(request, _cause_sentence(failure, categories, top_site))


def _cause_sentence(
    failure: SnapshotFailure, categories: Mapping[str, int], top_site: tuple[str, int] | None
) -> Text:
    if failure.in_use is None or failure.reserved is None:
        return text("The state at that moment isn't known.")
    elsewhere = sum(failure.other_holes or ())
    match failure.cause:
        case "fragmentation":
            return text(
                "Fragmentation: {unused} are reserved but unused, and the largest free block is "
                "{largest}{others}.",
                unused=format_bytes(failure.holes or 0),
                largest=format_bytes(failure.largest_hole or 0),
                others=f"; {format_bytes(elsewhere)} more are unused in other streams or pools"
                if elsewhere > MIN_TOP_SHARE * (failure.holes or 0)
                else "",
            )
        case "other pools":
            return text(
                "{unused} are reserved but unused in other streams or pools, which this request can't use.",
                unused=format_bytes(elsewhere),
            )
        case "limit":
            return text("Enough is free, so a limit of the process or a reservation elsewhere refused it.")
    return text(
        "{used} are in use{top}, {unused} reserved but unused.",
        used=format_bytes(failure.in_use),
        top=_largest_holder_text(failure.in_use, categories, top_site),
        unused=format_bytes(failure.unused or 0),
    )


def _largest_holder_text(in_use: int, categories: Mapping[str, int], top_site: tuple[str, int] | None) -> str:
    name, size = next(iter(categories.items()), ("", 0))
    if size < MIN_TOP_SHARE * in_use:
        return ""
    if name != CATEGORIES[UNKNOWN]:
        return f" ({format_bytes(size)} {name})"
    if top_site is not None and top_site[1] >= MIN_TOP_SHARE * in_use:
        return f" ({format_bytes(top_site[1])} from {top_site[0]})"
    return ""


def remedies(
    failure: SnapshotFailure,
    categories: Mapping[str, int],
    others: int | None,
    expandable: bool,
    leaks: Sequence[SiteGrowth],
    leaking: str | None,
    noun: str = "step",
) -> list[Text]:
    """Return what would make room for a failed allocation, most effective first; empty if that isn't known.

    others      bytes of the device that this process's allocator doesn't hold, None if unknown
    expandable  segments are expandable already
    leaks       sites that may leak, most bytes first; leaking: the frame of the first, None if it isn't known
    noun        what a step is, see `SnapshotGrowth`
    """
    found = list(_remedy_sentences(failure, categories, others, expandable))
    if leaking is None or failure.cause == "unknown":
        return found
    first, further = leaks[0], leaks[1:]
    more, places = sum(site.bytes for site in further), plural(len(further), "other place")
    freeing = text(
        "Free what {name} keeps (`detach()`, `item()`, a shorter list): {size} were allocated over {steps} and "
        "never freed{others}.",
        name=leaking,
        size=format_bytes(first.bytes),
        steps=plural(first.steps, noun),
        others=f"; {places} {agree(len(further), 'keeps', 'keep')} {format_bytes(more)}" if further else "",
    )
    usable = 0 if failure.cause == "limit" else failure.device_free or 0  # a limit holds this process off the rest
    enough = first.bytes + more + usable >= failure.size
    return [freeing, *found] if enough else [*found, freeing]


def growth_summary(growth: SnapshotGrowth, leaking: str | None, rising: str | None) -> Text:
    """Return what grew over the steps.

    leaking  the frame that leaks most; rising: the one with most of the rise, where nothing leaks
    """
    found = []
    if growth.leaks:
        first = growth.leaks[0]
        found.append(
            text(
                "Likely a leak: {size} in {blocks} from {name} were allocated in {born} of {steps} and never "
                "freed.",
                size=format_bytes(first.bytes),
                blocks=plural(first.blocks, "block"),
                name=leaking or "an unknown site",
                born=str(first.steps),
                steps=plural(growth.steps, growth.noun),
            )
        )
    if len(growth.leaks) > 1:
        found.append(text("The same goes for {places}.", places=plural(len(growth.leaks) - 1, "other place")))
    if growth.live is not None:
        found.append(
            text(
                "Memory in use rises by {size} per {noun}{name}.",
                size=format_bytes(growth.live),
                noun=growth.noun,
                name="" if rising is None else f", most of it from {rising}",
            )
        )
    if growth.reserved is not None:
        found.append(
            text(
                "Reserved memory rises by {size} per {noun} while tensors use {used}: memory is fragmented.",
                size=format_bytes(growth.reserved.per_step),
                noun=growth.noun,
                used=used_more(growth.reserved.used),
            )
        )
    nothing = text("No sign of a leak over {steps}.", steps=plural(growth.steps, growth.noun))
    return sentences(*found) if found else nothing


def _remedy_sentences(
    failure: SnapshotFailure, categories: Mapping[str, int], others: int | None, expandable: bool
) -> Iterator[Text]:
    match failure.cause:
        case "fragmentation":
            free = format_bytes((failure.holes or 0) + (failure.device_free or 0))
            if expandable:
                yield text(
                    "Allocate fewer different sizes (pad or bucket the inputs): {free} are free in pieces "
                    "although segments are expandable.",
                    free=free,
                )
            else:
                yield text(
                    "Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: {free} are free in pieces, "
                    "enough for this request.",
                    free=free,
                )
        case "other pools":
            unused = zip(failure.other_holes or (), _OBSTACLES, strict=True)
            for size, remedy in sorted(unused, key=lambda each: -each[0]):
                if size:
                    yield text(remedy, size=format_bytes(size))
        case "limit":
            yield text("Raise `torch.cuda.set_per_process_memory_fraction`, if the program sets it.")
        case "held":
            missing, reachable = failure.missing or 0, (failure.reserved or 0) + (failure.device_free or 0)
            elsewhere = others is not None and others >= missing + MAX_CONTEXT_BYTES
            if others is not None and elsewhere:
                yield text(
                    "Stop other processes on this GPU: {size} are held outside this process's allocator.",
                    size=format_bytes(others),
                )
            if failure.size > reachable and not elsewhere:
                yield text(
                    "Request less at once: if this process freed everything else, {size} would be available.",
                    size=format_bytes(reachable, "down"),
                )
            by_code = {CATEGORIES.index(name): size for name, size in categories.items()}
            for code, size in by_code.items():
                if code in _REMEDIES and size >= missing:
                    yield text(_REMEDIES[code], size=format_bytes(size))
            if others is None and reachable < max(failure.size, SMALL_DEVICE_BYTES):
                yield text(
                    "Look for other processes with `nvidia-smi`: if the GPU has more than {size}, they hold the "
                    "rest.",
                    size=format_bytes(reachable, "up"),
                )
            if failure.size <= reachable or elsewhere:
                yield text(
                    "At least {missing} must be freed for this request to fit.",
                    missing=format_bytes(missing, "down"),
                )
