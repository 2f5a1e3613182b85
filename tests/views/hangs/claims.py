"""Each sentence of Hangs on who holds a job up, and who waits: where it holds, and where it doesn't."""

from __future__ import annotations

from tests.support.claims import Claim, ReadSentences
from tests.support.dumps import DrawnJob, hung_job
from tests.support.random_jobs.surfaces import found_texts
from torch_tb_profiler.model.flight_recorder import JobDumps
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.hangs.build import build
from torch_tb_profiler.views.hangs.words import WHY

SECOND = 10**9


def of(job: DrawnJob | JobDumps) -> ReadSentences:
    dumps = job.dumps() if isinstance(job, DrawnJob) else job
    return lambda: " ".join(text for _, text in found_texts(build(dumps, NoParams()), ""))


def among_four(name: str, elements: int = 32) -> ReadSentences:
    """Return what is said where rank 2 calls this and the others an all_reduce of 32 elements."""
    job = DrawnJob(4).call("all_reduce").call(name, [2], done=False, elements=elements)
    return of(job.call("all_reduce", [0, 1, 3], done=False))


def swapped(*then: str) -> ReadSentences:
    """Return what is said where rank 0 calls what the others call, the first two calls exchanged."""
    job = DrawnJob(4)
    for name in ("all_gather", "all_reduce", *then):
        job.call(name, [0], done=False)
    for name in ("all_reduce", "all_gather", "all_reduce", "all_gather"):
        job.call(name, [1, 2, 3], done=False)
    return of(job)


def receiving(ranks: int) -> ReadSentences:
    """Return what is said where the first ranks of three receive from the next one, and no one sends."""
    job = DrawnJob(3)
    for rank in range(ranks):
        job.message("recv", rank, (rank + 1) % 3, done=False)
    return of(job)


def messaging(posted: bool) -> ReadSentences:
    """Return what is said where rank 3 waits for a second message of rank 1, which may have sent it."""
    job = DrawnJob(4, {"pp": [1, 3]}).call("all_reduce")
    job.message("send", 1, 3, group="pp").message("recv", 3, 1, group="pp")
    job.message("recv", 3, 1, group="pp", done=False)
    return of(job.message("send", 1, 3, group="pp", done=False) if posted else job)


def unmatched(*gone_on: int) -> ReadSentences:
    """Return what is said where rank 1 receives once more from rank 2, and some have gone on to an all_reduce."""
    job = DrawnJob(3)
    for _ in range(3):
        job.message("send", 2, 1).message("recv", 1, 2).call("all_reduce")
    return of(job.message("recv", 1, 2, done=False).call("all_reduce", gone_on, done=False))


def crossing(*second: int) -> ReadSentences:
    """Return what is said where ranks 0 and 2 are in a call of one group, and these ranks in one of another."""
    job = DrawnJob(4, {"g0": [0, 1, 2], "g1": [0, 1, 3]}).call("all_reduce")
    return of(
        job.call("all_reduce", [0, 2], group="g0", done=False).call("all_reduce", second, group="g1", done=False)
    )


def paused(after: int) -> ReadSentences:
    """Return what is said so many seconds after a job that once paused for 30 s made its last call."""
    job = DrawnJob(4).call("all_reduce")
    job.time += 30 * SECOND
    job.call("all_reduce").call("all_reduce", [0, 1, 2], done=False)
    return of(job.dumps(after_ns=after * SECOND))


def dumped_twice(goes_on: bool) -> ReadSentences:
    """Read the sentences about two dumps of a job, between which its pending calls may have finished."""
    job = hung_job()
    first = job.dumps(after_ns=100_000_000).files
    if goes_on:
        for entries in job.entries.values():
            for entry in entries:
                entry.update(state="completed", retired=True)
        job.call("all_reduce", [1]).call("all_reduce", [0], done=False)
    return of(JobDumps(job.dumps(after_ns=900 * SECOND).files, first))


def gloo(unrecorded: bool) -> ReadSentences:
    """Return what is said where rank 0 of two waits, and the other may be in a message that isn't recorded."""
    dumps = DrawnJob(2, backend="gloo").call("all_reduce").call("all_reduce", [0], done=False).dumps()
    assert dumps.files[1].dump is not None
    dumps.files[1].dump.unrecorded = unrecorded
    return of(dumps)


CLAIMS = [
    Claim(
        "No rank is waiting: every recorded call has finished.",
        "No rank is waiting: every recorded call has finished.",
        of(DrawnJob(4).call("all_reduce")),
        "a call has not",
        of(hung_job()),
    ),
    Claim(
        "The job was running when the dumps were written; no call is stuck.",
        r"The job was running when the dumps were written; no call is stuck\.",
        of(hung_job().dumps(after_ns=900_000_000)),
        "the call is older than 1 s",
        of(hung_job().dumps(after_ns=1_100_000_000)),
    ),
    Claim(
        "{culprit} never joined {peer}'s {operation} in {group}; {waiters}.",
        r"Rank 1 never joined rank 3's recv in group pp; rank 3 has waited 10 min for it\.",
        messaging(posted=False),
        "it has sent, too",
        messaging(posted=True),
    ),
    Claim(
        "{culprit} never called {call}; {waiters}.",
        r"Rank 1 never called all_reduce 4; ranks 0, 2 and 3 have waited 10 min for it\.",
        of(hung_job()),
        "another rank is the one that didn't",
        of(hung_job(culprit=2)),
    ),
    Claim(
        "{culprit} left no flight recorder; {waiters} in {call}.",
        r"Rank 2 left no flight recorder; ranks 0, 1 and 3 have waited 10 min for it in all_reduce 4\.",
        of(hung_job(culprit=2).dumps([0, 1, 3])),
        "it left one",
        of(hung_job(culprit=2)),
    ),
    Claim(
        "The {dump} of {culprit} can't be read; {waiters} in {call}.",
        r"The dump of rank 2 can't be read; ranks 0, 1 and 3 have waited 10 min for it in all_reduce 4\.",
        of(hung_job(culprit=2).dumps(unreadable=[2])),
        "one that can be read shows that its rank is in no call",
        of(hung_job(culprit=1).dumps(unreadable=[2])),
    ),
    Claim(
        "{ranks} wait for each other in {group}: each is in {operation}, and none can proceed.",
        r"Ranks 0 to 2 wait for each other in the default group: each is in recv, and none can proceed\.",
        receiving(3),
        "one of them is in no call",
        receiving(2),
    ),
    Claim(
        "{ranks} wait for each other: they use {groups} in opposite order.",
        r"Ranks 0 and 1 wait for each other: they use groups g0 and g1 in opposite order\.",
        crossing(1, 3),
        "one of them is in no call",
        crossing(3),
    ),
    Claim(
        "{waiter} waits in {operation} for {culprit}, which {rest}.",
        r"Rank 1 waits in recv for rank 2, which has gone on to all_reduce 4\.",
        unmatched(0, 2),
        "it is in no call",
        unmatched(0),
    ),
    Claim(
        "{ranks} of {group} {are} in {call}, and it doesn't finish. {rest}",
        r"All 4 ranks of the default group are in all_reduce 2, and it doesn't finish\. Suspect the network",
        among_four("all_reduce"),
        "one of them called something else",
        among_four("all_gather"),
    ),
    Claim(
        "{ranks} in {call}, but the job may only be slow.",
        r"3 ranks are waiting in all_reduce 3, but the job may only be slow\.",
        paused(20),
        "they wait for longer than it ever paused",
        paused(40),
    ),
    Claim(
        "Dump a second time a minute later, into the same folder.",
        "Dump a second time a minute later, into the same folder.",
        paused(20),
        "they wait for longer than it ever paused",
        paused(40),
    ),
    Claim(
        "{ranks} in {call}; these dumps don't show for whom.",
        r"1 rank waits in all_reduce 2; these dumps don't show for whom\.",
        gloo(unrecorded=True),
        "the other rank has no such messages",
        gloo(unrecorded=False),
    ),
    Claim(
        "{ranks} passed {odd} to {call} of {group}, {rest} {majority}.",
        r"Rank 2 passed 48 elements to all_reduce 2 of the default group, the other 3 ranks 32 elements\.",
        among_four("all_reduce", 48),
        "it passes as many",
        among_four("all_reduce"),
    ),
    Claim(
        "{ranks} called {odd} before {majority}, {rest} the other way around (call {number} of {group}).",
        r"Rank 0 called all_gather before all_reduce, the other 3 ranks the other way around \(call 1 of ",
        swapped("all_reduce", "all_gather"),
        "it left one call out",
        swapped("all_gather"),
    ),
    Claim(
        "{ranks} called {odd} where {rest} called {majority} (call {number} of {group}).",
        r"Rank 2 called all_gather where the other 3 ranks called all_reduce \(call 2 of the default group\)\.",
        among_four("all_gather"),
        "it called that, too",
        among_four("all_reduce"),
    ),
    Claim(
        "{ranks} {verb} held up by it.",
        r"3 ranks are held up by it\.",
        among_four("all_gather"),
        "it called that, too",
        among_four("all_reduce"),
    ),
    Claim(
        "The oldest pending call was {age} old, less than {limit}.",
        r"The oldest pending call was 901 ms old, less than 1\.00 s\.",
        of(hung_job().dumps(after_ns=900_000_000)),
        "it is older",
        of(hung_job().dumps(after_ns=1_100_000_000)),
    ),
    Claim(
        "The calls that were pending in the first dump had finished by the second.",
        "The calls that were pending in the first dump had finished by the second.",
        dumped_twice(goes_on=True),
        "they have not",
        dumped_twice(goes_on=False),
    ),
    Claim(
        "{rank} last called {call} of {group}, which finished.",
        r"Rank 1 last called all_reduce 3 of the default group, which finished\.",
        of(hung_job()),
        "another rank is in no call",
        of(hung_job(culprit=2)),
    ),
    Claim(
        "{rank} has made no calls.",
        r"Rank 1 has made no calls\.",
        of(DrawnJob(2).call("all_reduce", [0], done=False)),
        "it has called one before",
        of(DrawnJob(2).call("all_reduce").call("all_reduce", [0], done=False)),
    ),
]

NO_CLAIMS = {
    "No flight recorder can be read, so who holds the job up is unknown.": "why nothing is said",
    "Who holds the job up is unknown.": "why nothing is said",
    "To see where it is, dump its stack: `py-spy dump --pid <pid>`.": "what would tell more",
    "Suspect the network or a GPU.": "the end of another sentence",
    "A flight recorder doesn't say where a rank is between calls. Run `py-spy dump --pid <pid> > "
    "rank{}.stack.txt` on its node, and put the file beside the dumps.": "what would tell more: test_dumps.py",
    **dict.fromkeys(WHY.values(), "dumps where it holds, and where it doesn't: test_why_unknown.py"),
}
"""Templates that say nothing of who, why, or how much, with the reason."""
