"""What files beside a trace say about the origin of its kernels, as plain values that are cached with the trace.

A capture is what one thread launches between BeginCapture and EndCapture; a compiled graph is what torch.compile
made of a part of the program, with the kernels that its code calls in order.
"""

from __future__ import annotations

import msgspec


class LaunchSite(msgspec.Struct, frozen=True):
    """What is around a launch on its thread.

    operator  the innermost operator
    modules   names of the `nn.Module` calls, outermost first
    lines     `file:line` of the user's frames, innermost first
    shapes    `Input Dims` of the operator, as JSON
    owner     the operator that counts for the work of the launch: this one, or a modeled one around it
    inputs    the owner's `Input Dims`, `Input type`, `Input Strides` and `Concrete Inputs`, as JSON; none of a
              wrapper, whose work another operator has
    backward  whether it runs in the backward pass
    """

    operator: str | None = None
    modules: tuple[str, ...] | None = None
    lines: tuple[str, ...] | None = None
    shapes: str | None = None
    owner: str | None = None
    inputs: tuple[str | None, ...] = ()
    backward: bool | None = None


class Capture(msgspec.Struct, frozen=True):
    """The launches of one graph capture, in order.

    source   the file or run that holds it
    size     batch size that the server names for it, None if it names none
    kernels  name of each launched kernel, None where the call doesn't say it
    sites    index into `CaptureSet.sites` of each launch
    calls    number of the call of the owner of each launch, in order of the first launch; -1 without an owner
    forked   whether work was captured on several streams, so that replays may run it in another order
    """

    source: str
    size: int | None
    kernels: tuple[str | None, ...]
    sites: tuple[int, ...]
    calls: tuple[int, ...] = ()
    forked: bool = False


class CaptureSet(msgspec.Struct, frozen=True):
    """Captures that share a table of launch sites."""

    sites: tuple[LaunchSite, ...] = ()
    captures: tuple[Capture, ...] = ()


class CompiledKernel(msgspec.Struct, frozen=True):
    """A call of a kernel in the code of a compiled graph.

    name        `triton_poi_fused_add_0`, `cpp_fused_add_0`, `extern_kernels.mm`
    nodes       FX nodes of the program that it computes, None if not recorded
    post_nodes  the same in the graph after all passes
    lines       `file:line` of the program, one for each recorded stack, without repetitions
    """

    name: str
    nodes: tuple[str, ...] | None = None
    post_nodes: tuple[str, ...] | None = None
    lines: tuple[str, ...] | None = None


class CompiledGraph(msgspec.Struct, frozen=True):
    """A graph that torch.compile generated code for.

    compile_id  "frame/compile of the frame", as in `Torch-Compiled Region: 0/1`
    key         of the compile cache, None if the cache was off
    kernels     in the order of the calls in its code
    source      the generated code; "" if the record left it out
    """

    compile_id: str
    backward: bool
    key: str | None
    kernels: tuple[CompiledKernel, ...]
    file: str = ""
    source: str = ""


class NodeAnnotation(msgspec.Struct, frozen=True):
    """What was noted about a node of a CUDA graph when it was captured."""

    region: str | None = None
    backward: bool | None = None


class PlacedIterations(msgspec.Struct, frozen=True):
    """Where iterations of AORTA's metrics lie in a trace of the same process.

    path        of the file of metrics, in the location of the trace
    recording   number of the recording in the file
    number      of each iteration in that recording
    begin, end  of each in the trace, ns
    """

    path: str
    recording: int
    number: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]


class OriginRecords(msgspec.Struct, frozen=True):
    """All that files beside a trace say about origins.

    captures     found in other files; those of the trace's own file are found there
    graphs       compile records
    packaged     calls of kernels in the code of a model that AOTInductor compiled, in order
    stacks       lines of each graph node, by the node's whole ID as text
    annotations  notes on graph nodes, in the same way
    iterations   iterations that were joined with the trace
    """

    captures: CaptureSet = CaptureSet()
    graphs: tuple[CompiledGraph, ...] = ()
    packaged: tuple[CompiledKernel, ...] = ()
    stacks: dict[str, tuple[str, ...]] = {}
    annotations: dict[str, NodeAnnotation] = {}
    iterations: PlacedIterations | None = None


NO_RECORDS = OriginRecords()


def join_captures(sets: list[CaptureSet]) -> CaptureSet:
    """Return all captures of several sets as one set."""
    sites: list[LaunchSite] = []
    captures: list[Capture] = []
    for each in sets:
        base = len(sites)
        sites += each.sites
        for capture in each.captures:
            shifted = tuple(site + base for site in capture.sites)
            captures.append(msgspec.structs.replace(capture, sites=shifted))
    return CaptureSet(tuple(sites), tuple(captures))
