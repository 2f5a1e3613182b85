"""What a rank's exposed communication is spent on, as the files of the other ranks tell."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.distributed.steps import ExposedCommunication
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.views._shared.text import Phrase, Text, link, text

MOST_RANKS = 64
"""The files of the others are read for a larger job in Distributed only: the other pages are one rank's."""

_ROUNDING_NS = 1e-3
"""Means of whole ns over fewer than 1,000 steps are no finer: what is left below it is an error of arithmetic."""

_EVIDENCE = link("distributed")


class CommunicationParts(msgspec.Struct, frozen=True):
    """What the communication of the average step that nothing hides is spent on; mean ns.

    transfer_ns  data moves; waiting_ns: waiting for other ranks, at least; uncompared_ns: the rest, of operations
                 that no other rank recorded alike. They sum to the communication
    """

    transfer_ns: float
    waiting_ns: float
    uncompared_ns: float


def communication_parts(whole: float, exposed: ExposedCommunication | None) -> CommunicationParts:
    """`whole`: mean ns per step; no more is known than that."""
    waiting = min(exposed.waiting, whole) if exposed else 0.0
    transfer = min(exposed.transfer, whole - waiting) if exposed else 0.0
    rest = whole - waiting - transfer
    return CommunicationParts(transfer, waiting, rest if rest > _ROUNDING_NS else 0.0)


def not_read(ranks: int, coming: int) -> Text:
    """Of a job so large that its files are not read for a page of one rank."""
    return text(
        "This rank is not compared with the others: {coming} of the {ranks} ranks are not read for this page. "
        "{distributed} reads and compares them all.",
        coming=f"{coming:,}",
        ranks=f"{ranks:,}",
        distributed=Phrase("Distributed", _EVIDENCE),
    )


def parts_sentence(parts: CommunicationParts, whom: Text = (), *, hidden: bool = False) -> Text:
    """Of communication that is not 0; `whom`: for which ranks it waits; `hidden`: operators of the host may run
    during it, as all communication of the host counts."""
    whole = parts.transfer_ns + parts.waiting_ns + parts.uncompared_ns
    return text(
        "Of {whole} of communication{alone}, {waiting} is waiting for other ranks{whom} and "
        "{transfer} transfer{rest}.",
        whole=format_duration(whole),
        alone="" if hidden else " that nothing hides",
        waiting=Phrase(format_duration(parts.waiting_ns) if parts.waiting_ns else "none", _EVIDENCE),
        whom=whom,
        transfer=format_duration(parts.transfer_ns),
        rest=_rest(parts.uncompared_ns, whole),
    )


def _rest(uncompared_ns: float, whole: float) -> str:
    """The part that is neither, if it is not only rounding."""
    if uncompared_ns < 0.01 * whole:
        return ""
    return f"; for {format_duration(uncompared_ns)} no other rank tells"
