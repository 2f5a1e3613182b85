"""The address map of a memory snapshot: which parts of each segment are in use, and by what."""

from __future__ import annotations

from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.memory.snapshot.address_map import map_segments
from torch_tb_profiler.analyses.memory.snapshot.allocators import find_allocator, largest_segments
from torch_tb_profiler.model.snapshots import RecordedSnapshot
from torch_tb_profiler.view import FileParams, FileView


class AddressMapParams(FileParams, frozen=True):
    """A snapshot and a device in it; at most `limit` segments, each in at most `pieces` pieces."""

    device: int | None = None
    limit: Annotated[int, msgspec.Meta(ge=0, le=2000)] = 100
    pieces: Annotated[int, msgspec.Meta(ge=1, le=4000)] = 400


class MapPiece(msgspec.Struct, frozen=True, array_like=True):
    """Neighboring blocks of one kind: offset in the segment, bytes, and kind.

    kind  a category of blocks in use, "free", "awaiting free", or "mixed" for blocks too small to show
    """

    offset: int
    bytes: int
    kind: str


class MappedSegment(msgspec.Struct, frozen=True):
    """A segment from one `cudaMalloc` with its pieces in order of address; they add up to its blocks.

    largest_free_bytes  the largest free block, free_bytes: all of them
    """

    address: str
    stream: int
    kind: str
    bytes: int
    allocated_bytes: int
    free_bytes: int
    largest_free_bytes: int
    blocks: int
    pieces: list[MapPiece]


class AddressMap(msgspec.Struct, frozen=True):
    """The segments of a device by size, largest first, in the state of the snapshot itself."""

    device: int
    reserved_bytes: int
    free_bytes: int
    largest_free_bytes: int
    total_segments: int
    segments: list[MappedSegment]


def build_map(snapshot: RecordedSnapshot, params: AddressMapParams) -> AddressMap:
    """Build the map of one device. NotFoundError for an unknown device."""
    allocator = find_allocator(snapshot, params.device)
    segments = largest_segments(snapshot, allocator.device, params.limit)
    mapped = map_segments(snapshot, [segment.row for segment in segments], params.pieces)
    return AddressMap(
        device=allocator.device,
        reserved_bytes=allocator.reserved,
        free_bytes=allocator.free,
        largest_free_bytes=allocator.largest_free,
        total_segments=allocator.segments,
        segments=[
            MappedSegment(
                address=hex(segment.address),
                stream=segment.stream,
                kind=segment.kind,
                bytes=segment.size,
                allocated_bytes=segment.allocated,
                free_bytes=pieces.free,
                largest_free_bytes=pieces.largest_free,
                blocks=segment.blocks,
                pieces=[MapPiece(*piece) for piece in pieces.pieces],
            )
            for segment, pieces in zip(segments, mapped, strict=True)
        ],
    )


ADDRESS_MAP = FileView(
    "memory/map", "Address map", AddressMapParams, AddressMap, build_map, "snapshot", rows="segments"
)
