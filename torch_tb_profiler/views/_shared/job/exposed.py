"""What a rank's exposed communication is spent on, from the files of the other ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.views._shared.text import Phrase, Text, join_phrases, link, text, worker_name

if TYPE_CHECKING:
    from torch_tb_profiler.analyses.distributed.steps import ExposedCommunication

MAX_RANKS_READ = 64
"""Largest job whose other ranks are read for a page about one rank; only Distributed reads larger ones."""

_MAX_ROUNDING_ERROR_NS = 1e-3
"""Remainders below this many ns are rounding errors: means of whole ns over up to 1,000 steps are no finer."""

_MIN_NAMED_SHARE = 0.01
"""Smallest share of communication whose waiting is given as a lower bound where ranks are missing."""

_MIN_AWAITED_SHARE, _MAX_AWAITED_RANKS = 0.05, 3
"""Smallest share of the waiting for which a rank is named, and most ranks that are named."""

_EVIDENCE = link("distributed")


class CommunicationParts(msgspec.Struct, frozen=True):
    """What the exposed communication of an average step is spent on, mean ns; the three sum to all of it.

    transfer_ns    data moves
    waiting_ns     the rank waits for other ranks, at least
    uncompared_ns  the rest: collectives that no other rank recorded alike
    bounded        ranks aren't compared, and waiting for them counts as transfer, which is at most this
    """

    transfer_ns: float
    waiting_ns: float
    uncompared_ns: float
    bounded: bool = False


def communication_parts(total: float, exposed: ExposedCommunication | None) -> CommunicationParts:
    """Split `total`, the mean ns per step of exposed communication; all of it is uncompared without `exposed`."""
    waiting = min(exposed.waiting, total) if exposed else 0.0
    transfer = min(exposed.transfer, total - waiting) if exposed else 0.0
    return _with_rest(total, transfer, waiting, exposed)


def path_communication_parts(
    total: float, communication: ExposedCommunication | None, exposed: ExposedCommunication | None
) -> CommunicationParts:
    """Split `total`, the mean ns per step of communication on a critical path.

    The path goes through a collective while nothing is computed, and where it is long, before that: so it leaves
    out exposed communication only if it is shorter than all of it, and of that the transfer last.

    communication  all of the rank's, overlapped with computation or not; exposed: only what isn't
    """
    if communication is None:
        return _with_rest(total, 0.0, 0.0, None)
    least = 0.0
    if exposed is not None:
        least = exposed.waiting - max(exposed.waiting + exposed.transfer - total, 0.0)
    transfer = min(communication.transfer, total - max(least, 0.0))
    waiting = min(communication.waiting, total - transfer)
    return _with_rest(total, transfer, waiting, communication)


def _with_rest(
    total: float, transfer: float, waiting: float, communication: ExposedCommunication | None
) -> CommunicationParts:
    rest = total - waiting - transfer
    bounded = communication is not None and communication.bounded and transfer > 0
    return CommunicationParts(transfer, waiting, rest if rest > _MAX_ROUNDING_ERROR_NS else 0.0, bounded)


def is_compared(parts: CommunicationParts) -> bool:
    """Return whether all communication worth naming was compared, so that its transfer contains no waiting."""
    total = parts.transfer_ns + parts.waiting_ns + parts.uncompared_ns
    return not parts.bounded and parts.uncompared_ns < _MIN_NAMED_SHARE * total


def unread_ranks_sentence(ranks: int, unread: int) -> Text:
    """Say that the job is too large to read all its ranks for a page about one."""
    return text(
        "{unread} of the {ranks} ranks weren't read for this page, so this rank isn't compared with the others. "
        "{distributed} compares them all.",
        unread=f"{unread:,}",
        ranks=f"{ranks:,}",
        distributed=Phrase("Distributed", _EVIDENCE),
    )


def awaited_clause(parts: CommunicationParts, awaited: Sequence[tuple[int | None, str, float]]) -> Text:
    """Return " (5.00 ms for rank 1)": whom the waiting is for; `awaited`: (rank, worker, ns), largest first."""
    phrases = [
        Phrase(f"{format_duration(ns)} for {worker_name(rank, worker)}", link("trace", worker=worker))
        for rank, worker, ns in awaited
        if ns >= _MIN_AWAITED_SHARE * parts.waiting_ns
    ]
    return text(" ({ranks})", ranks=join_phrases(phrases[:_MAX_AWAITED_RANKS])) if phrases else ()


def communication_sentence(
    parts: CommunicationParts, awaited: Text = (), *, what: str = "exposed communication"
) -> Text:
    """Say how communication, which is not 0, splits into waiting and transfer.

    awaited  in parentheses, which ranks it waits for
    what     the communication that is split; it isn't called exposed where the host communicates, as its operators
             may run at the same time
    """
    total = parts.transfer_ns + parts.waiting_ns + parts.uncompared_ns
    if parts.bounded and parts.waiting_ns < _MIN_NAMED_SHARE * total:
        return text(
            "How much of {total} of {what} is waiting for other ranks isn't known exactly, because not every "
            "rank's part is {recorded}.",
            total=format_duration(total),
            what=what,
            recorded=Phrase("recorded", _EVIDENCE),
        )
    waiting = format_duration(parts.waiting_ns, "down" if parts.bounded else "half")
    return text(
        "Of {total} of {what}, {scope}{least}{waiting} is spent waiting for other ranks{awaited} and "
        "{most}{transfer} transferring data{counted}.",
        total=format_duration(total),
        what=what,
        scope=_uncompared_clause(parts, total),
        least="at least " if parts.bounded else "",
        most="at most " if parts.bounded else "",
        counted="; waiting for ranks whose part isn't recorded counts as transfer" if parts.bounded else "",
        waiting=Phrase(waiting if parts.waiting_ns else "none", _EVIDENCE),
        awaited=awaited,
        transfer=format_duration(parts.transfer_ns, "up" if parts.bounded else "half"),
    )


def _uncompared_clause(parts: CommunicationParts, total: float) -> Text:
    """Say how much of the communication nothing is known of, if that is more than rounding."""
    if parts.uncompared_ns < _MIN_NAMED_SHARE * total:
        return ()
    return text(
        "{uncompared} can't be compared with another rank; of the other {compared}, ",
        uncompared=format_duration(parts.uncompared_ns),
        compared=format_duration(parts.waiting_ns + parts.transfer_ns),
    )
