from __future__ import annotations

import pytest

from tests.support.memory_traces import CALLS, STEPS, five_steps, memory, steps_that_leave
from tests.support.traces import draw
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import Text, plain
from torch_tb_profiler.views.memory.build import build
from torch_tb_profiler.views.memory.payload import MemoryDeviceEntry
from torch_tb_profiler.views.memory.words import timeline_headline

GPU = [{"id": 0, "name": "A100", "totalGlobalMem": 10 * 2**20}]


def device(events: str, picture: str = CALLS, name: str = "GPU 0") -> MemoryDeviceEntry:
    payload = build(draw(picture, *memory(events), deviceProperties=GPU), NoParams())
    return next(each for each in payload.devices if each.name == name)


def links(text: Text) -> dict[str, str]:
    return {phrase.text: phrase.link for phrase in text if phrase.link is not None}


def test_the_headline_names_the_peak_and_what_allocated_most_of_it() -> None:
    headline = device("20 GPU0 a 524288 2097152 4194304\n115 GPU0 b 4194304 6291456 8388608").headline
    assert plain(headline) == (
        "Memory on GPU 0 peaks at 6.00 MiB, 60% of its capacity; aten::relu allocated 4.00 MiB of it."
    )
    assert links(headline) == {
        "6.00 MiB, 60% of its capacity": "memory?device=GPU+0&at=115000",
        "aten::relu": "memory?device=GPU+0&q=aten%3A%3Arelu",
    }


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (
            "20 GPU0 a 524288 2097152 4194304",
            "Memory on GPU 0 peaks at 2.00 MiB, 20% of its capacity; "
            "1.50 MiB were allocated before the trace started.",
        ),
        (
            "20 GPU0 a -524288 1572864 4194304",
            "Memory on GPU 0 peaks at 1.50 MiB, 15% of its capacity; "
            "all of it was allocated before the trace started.",
        ),
        (
            "20 GPU0 a 1 2097152 4194304",
            "Memory on GPU 0 peaks at 2.00 MiB, 20% of its capacity; "
            "nearly all of it was allocated before the trace started.",
        ),
        # outside operators
        ("95 GPU0 a 1048576 1048576 4194304", "Memory on GPU 0 peaks at 1.00 MiB, 10% of its capacity."),
        ("20 GPU0 - 512 - -", "512 B were allocated during the trace; the peak wasn't recorded."),
    ],
)
def test_most_of_the_peak_may_be_older_or_outside_operators_or_unknown(events: str, expected: str) -> None:
    assert plain(device(events).headline) == expected


def test_a_device_that_the_file_does_not_describe_has_no_share() -> None:
    cpu = device("115 CPU a 2097152 2097152 0", name="CPU")
    assert plain(cpu.headline) == "Memory on CPU peaks at 2.00 MiB; aten::relu allocated 2.00 MiB of it."
    xpu = device("115 XPU0 a 1048576 1048576 0", name="XPU 0")
    assert plain(xpu.headline).startswith("Memory on XPU 0 peaks at 1.00 MiB, 10% of its capacity;")


@pytest.mark.parametrize(
    ("events", "headline"),
    [
        ("20 GPU0 a 8 8 0", "Only 8 B were allocated on GPU 0 during the trace."),
        ("20 GPU0 a 512 2048 4096", "No more than 2.00 KiB are in use on GPU 0 at any time."),  # older blocks
        (
            "\n".join(f"{20 + 2 * i} GPU0 a 599200 599200 0\n{21 + 2 * i} GPU0 a -599200 0 0" for i in range(2)),
            "No more than 586 KiB are in use on GPU 0 at any time.",
        ),
    ],
)
def test_a_peak_below_one_mebibyte_is_no_finding(events: str, headline: str) -> None:
    assert plain(device(events).headline) == headline


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("20 GPU0 a 8 8 0", "1 allocation on GPU 0; 1 still live at the end of the trace."),
        ("20 GPU0 a 8 8 0\n30 GPU0 b 8 16 0", "2 allocations on GPU 0; 2 still live at the end of the trace."),
        ("20 GPU0 a 8 8 0\n30 GPU0 a -8 0 0", "1 allocation on GPU 0; released before the trace ends."),
        ("20 GPU0 a -8 8 0", "0 allocations on GPU 0."),
        ("20 GPU0 - 8 8 0", "1 allocation on GPU 0."),  # no addresses: nothing is known of its release
        ("20 GPU0 - 8 8 0\n25 GPU0 a -8 0 0", "1 allocation on GPU 0."),
    ],
)
def test_what_became_of_the_allocations(events: str, expected: str) -> None:
    assert plain(device(events).details) == expected


def test_unreleased_blocks_and_the_worst_fragmentation_are_one_click_away() -> None:
    sentence = device("20 GPU0 a 1024 1024 3072\n30 GPU0 b 1024 2048 3072").details
    assert plain(sentence).endswith("Up to 2.00 KiB is reserved by the allocator but unused.")
    assert links(sentence) == {
        "2": "memory?device=GPU+0&state=unreleased",
        "2.00 KiB": "memory?device=GPU+0&at=20000",
    }
    full = device("20 GPU0 a 1024 1024 1024").details
    assert "unused" not in plain(full)


def test_failed_allocations_come_first() -> None:
    failures = memory("115 GPU0 - 4096 1312 9000\n116 GPU0 - 4096 1312 9000\n117 CPU - 4096 1312 9000")
    for failure in failures:
        failure["name"] = "[OutOfMemory]"
    trace = draw(CALLS, *memory("20 GPU0 a 8 8 0"), *failures)
    payload = build(trace, NoParams())
    sentence = payload.devices[0].details
    assert plain(sentence).startswith("2 allocations ran out of memory. 1 allocation on GPU 0;")
    assert links(sentence)["2 allocations"] == f"trace?event={payload.out_of_memory[0].event}"


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (
            (1024,) * 4,
            "Memory may leak 1.00 KiB per step: blocks that code outside operators "
            "allocated in 4 of 4 steps are still live at the end of the last one (4.00 KiB).",
        ),
        (
            (2048, 0, 2048, 0, 2048, 0),
            "Memory may leak 1.00 KiB per step: blocks that code outside operators "
            "allocated in 3 of 6 steps are still live at the end of the last one (6.00 KiB).",
        ),
        (
            (1000, 1000, 0, 0, 0),
            "No sign of a leak: no operator keeps allocating blocks that are never released.",
        ),
        (
            (25, 25, 25, 25),
            "No significant leak: blocks of several steps stay allocated, but hold at most 0.1% of the peak.",
        ),
        ((1000,) * 3, "Too few steps to check for leaks; record at least 4."),
    ],
)
def test_the_hint_of_a_leak_and_its_absence(sizes: tuple[int, ...], expected: str) -> None:
    (growth,) = build(steps_that_leave(*sizes), NoParams()).growth
    assert plain(growth.verdict) == expected


def test_without_addresses_a_leak_is_unknown_not_absent() -> None:
    events = "\n".join(f"{100 * i + 50} CPU - 1000 {1000 * i} 0" for i in range(1, 6))
    (growth,) = build(draw(STEPS, *memory(events)), NoParams()).growth
    assert plain(growth.verdict).startswith("Can't check for leaks: the file has no addresses")


def test_a_leak_leads_to_the_table_of_its_holders_and_to_the_latest_block() -> None:
    payload = build(five_steps(), NoParams())
    (growth,) = payload.growth
    assert plain(growth.verdict) == (
        "Memory may leak 300 B per step: blocks that aten::relu allocated in 4 of 5 steps "
        "are still live at the end of the last one (1.17 KiB)."
    )
    assert links(growth.verdict) == {
        "300 B": "memory?device=GPU+0&table=growth",
        "aten::relu": "memory?device=GPU+0&q=aten%3A%3Arelu",
    }
    (holder,) = growth.holders
    assert plain(holder.summary) == (
        "Holds 1.17 KiB at the end of step 5: 4 blocks, allocated in 4 steps since step 2."
    )
    assert links(holder.summary) == {"4 blocks": f"trace?event={holder.event}"}
    assert plain(payload.headline) == (
        f"{plain(payload.devices[0].headline)} Memory may leak 300 B per step, from aten::relu."
    )


def test_other_places_that_leak_are_counted() -> None:
    calls = "\n".join(
        f"host cpu_op aten::{'ab'[k]} {100 * i + 10 + 40 * k} 20" for i in range(1, 6) for k in (0, 1)
    )
    events = "\n".join(
        f"{100 * i + 15 + 40 * k} CPU {k}{i} {300 + k} {600 * i} 0" for i in range(1, 6) for k in (0, 1)
    )
    (growth,) = build(draw(f"{STEPS}\n{calls}", *memory(events)), NoParams()).growth
    assert [holder.name for holder in growth.holders] == ["aten::b", "aten::a"]
    assert plain(growth.verdict).endswith("(1.47 KiB). The same goes for 1 other place.")
    assert plain(growth.verdict).startswith("Memory may leak 601 B per step")


def test_the_headline_speaks_of_the_default_device_alone() -> None:
    cpu_leaks = "".join(f"\n{100 * i + 50} CPU c{i} 1000 {1000 * i} 0" for i in range(1, 6))
    trace = draw(STEPS, *memory(f"120 GPU0 a 8 8 0{cpu_leaks}"))
    payload = build(trace, NoParams())
    assert [growth.growing for growth in payload.growth] == [True, False]
    assert plain(payload.headline) == plain(payload.devices[1].headline)


def test_without_events_the_headline_names_the_option() -> None:
    assert plain(build(draw(CALLS), NoParams()).headline) == (
        "No memory events were recorded (`profile(profile_memory=True)`)."
    )


def test_names_of_a_trace_are_text() -> None:
    hostile = CALLS.replace("aten::relu", "{share}<img>&q=1")
    sentence = device("115 GPU0 a 2097152 2097152 2097152", hostile).headline
    assert "{share}<img>&q=1 allocated 2.00 MiB" in plain(sentence)
    assert links(sentence)["{share}<img>&q=1"] == "memory?device=GPU+0&q=%7Bshare%7D%3Cimg%3E%26q%3D1"


def test_the_most_that_a_small_timeline_has_in_use_is_rounded_up() -> None:
    """600,000 B are 585.9 KiB."""
    for size, said in ((600_000, "No more than 586 KiB are"), (600_100, "No more than 587 KiB are")):
        assert plain(timeline_headline(["parameter"], [size], size)).startswith(said)
    assert plain(timeline_headline(["parameter"], [3_147_000], 3_147_000)).startswith("Memory peaks at 3.00 MiB")
