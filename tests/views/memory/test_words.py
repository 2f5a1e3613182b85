from __future__ import annotations

import pytest

from tests.support.memory_events import memory
from tests.support.memory_traces import CALLS, STEPS, five_steps, steps_that_leave
from tests.support.traces import draw
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import Text, plain
from torch_tb_profiler.views.memory.build import build
from torch_tb_profiler.views.memory.payload import MemoryDevice

GPU = [{"id": 0, "name": "A100", "totalGlobalMem": 10_240}]


def device(events: str, picture: str = CALLS, name: str = "GPU 0") -> MemoryDevice:
    payload = build(draw(picture, *memory(events), deviceProperties=GPU), NoParams())
    return next(each for each in payload.devices if each.name == name)


def links(text: Text) -> dict[str, str]:
    return {phrase.text: phrase.link for phrase in text if phrase.link is not None}


def test_the_headline_names_the_peak_and_who_holds_most_of_it() -> None:
    said = device("20 GPU0 a 512 2048 4096\n115 GPU0 b 4096 6144 8192").headline
    assert plain(said) == "Memory peaks at 6.00 KiB, 60% of the GPU; aten::relu holds 4.00 KiB of it."
    assert links(said) == {
        "6.00 KiB, 60% of the GPU": "memory?device=GPU+0&at=115000",
        "aten::relu": "memory?device=GPU+0&q=aten%3A%3Arelu",
    }


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (
            "20 GPU0 a 512 2048 4096",
            "Memory peaks at 2.00 KiB, 20% of the GPU; 1.50 KiB of it is from before the trace.",
        ),
        (
            "20 GPU0 a -512 1536 4096",
            "Memory peaks at 1.50 KiB, 15% of the GPU; all of it is from before the trace.",
        ),
        (
            "20 GPU0 a 1 2097152 4194304",
            "Memory peaks at 2.00 MiB, 20,480% of the GPU; nearly all of it is from before the trace.",
        ),
        ("95 GPU0 a 1024 1024 4096", "Memory peaks at 1.00 KiB, 10% of the GPU."),  # outside of operators
        ("20 GPU0 - 512 - -", "The trace allocates 512 B in total; how much was in use at once is not recorded."),
    ],
)
def test_what_holds_most_is_older_or_outside_or_unknown(events: str, said: str) -> None:
    assert plain(device(events).headline) == said


def test_a_device_that_the_file_does_not_describe_has_no_share() -> None:
    assert plain(device("115 CPU a 64 64 0", name="CPU").headline) == (
        "Memory peaks at 64 B; aten::relu holds 64 B of it."
    )
    said = plain(device("115 XPU0 a 64 64 0", name="XPU 0").headline)
    assert said.startswith("Memory peaks at 64 B, 0.6% of the device;")


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ("20 GPU0 a 8 8 0", "1 allocation on GPU 0; 1 is not released before the trace ends."),
        ("20 GPU0 a 8 8 0\n30 GPU0 b 8 16 0", "2 allocations on GPU 0; 2 are not released before the trace ends."),
        ("20 GPU0 a 8 8 0\n30 GPU0 a -8 0 0", "1 allocation on GPU 0; it is released before the trace ends."),
        ("20 GPU0 a -8 8 0", "0 allocations on GPU 0."),
        ("20 GPU0 - 8 8 0", "1 allocation on GPU 0."),  # no addresses: nothing is known of its release
        ("20 GPU0 - 8 8 0\n25 GPU0 a -8 0 0", "1 allocation on GPU 0."),
    ],
)
def test_what_became_of_the_allocations(events: str, said: str) -> None:
    assert plain(device(events).details) == said


def test_unreleased_blocks_and_the_worst_fragmentation_are_one_click_away() -> None:
    said = device("20 GPU0 a 1024 1024 3072\n30 GPU0 b 1024 2048 3072").details
    assert plain(said).endswith("At worst, the allocator holds 2.00 KiB that no tensor uses.")
    assert links(said) == {"2": "memory?device=GPU+0&state=unreleased", "2.00 KiB": "memory?device=GPU+0&at=20000"}
    full = device("20 GPU0 a 1024 1024 1024").details
    assert "no tensor uses" not in plain(full)


def test_failed_allocations_come_first() -> None:
    failures = memory("115 GPU0 - 4096 1312 9000\n116 GPU0 - 4096 1312 9000\n117 CPU - 4096 1312 9000")
    for failure in failures:
        failure["name"] = "[OutOfMemory]"
    trace = draw(CALLS, *memory("20 GPU0 a 8 8 0"), *failures)
    payload = build(trace, NoParams())
    said = payload.devices[0].details
    assert plain(said).startswith("2 allocations failed for lack of memory. 1 allocation on GPU 0;")
    assert links(said)["2 allocations"] == f"trace?event={payload.out_of_memory[0].event}"


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (
            (1024,) * 4,
            "Memory may leak by 1.00 KiB per step: blocks that code outside of operators "
            "allocated in 4 of 4 steps are still live at the end of the last, 4.00 KiB.",
        ),
        (
            (2048, 0, 2048, 0, 2048, 0),
            "Memory may leak by 1.00 KiB per step: blocks that code outside of operators "
            "allocated in 3 of 6 steps are still live at the end of the last, 6.00 KiB.",
        ),
        ((1000, 1000, 0, 0, 0), "No leak shows: no operator keeps allocating blocks that stay."),
        ((25, 25, 25, 25), "Some blocks of several steps stay, but they hold no more than 0.1% of the peak."),
        ((1000,) * 3, "Fewer than 4 steps do not tell whether memory leaks."),
    ],
)
def test_the_hint_of_a_leak_and_its_absence(sizes: tuple[int, ...], said: str) -> None:
    (growth,) = build(steps_that_leave(*sizes), NoParams()).growth
    assert plain(growth.verdict) == said


def test_without_addresses_a_leak_is_unknown_not_absent() -> None:
    events = "\n".join(f"{100 * i + 50} CPU - 1000 {1000 * i} 0" for i in range(1, 6))
    (growth,) = build(draw(STEPS, *memory(events)), NoParams()).growth
    assert plain(growth.verdict).startswith("Whether memory leaks is not known: the file has no addresses")


def test_a_leak_leads_to_the_table_of_its_holders_and_to_the_latest_block() -> None:
    payload = build(five_steps(), NoParams())
    (growth,) = payload.growth
    assert plain(growth.verdict) == (
        "Memory may leak by 300 B per step: blocks that aten::relu allocated in 4 of 5 steps are still live at "
        "the end of the last, 1.17 KiB."
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
    assert plain(payload.headline) == f"{plain(payload.devices[0].headline)} {plain(growth.verdict)}"


def test_other_places_that_leak_are_counted() -> None:
    calls = "\n".join(
        f"host cpu_op aten::{'ab'[k]} {100 * i + 10 + 40 * k} 20" for i in range(1, 6) for k in (0, 1)
    )
    events = "\n".join(
        f"{100 * i + 15 + 40 * k} CPU {k}{i} {300 + k} {600 * i} 0" for i in range(1, 6) for k in (0, 1)
    )
    (growth,) = build(draw(f"{STEPS}\n{calls}", *memory(events)), NoParams()).growth
    assert [holder.name for holder in growth.holders] == ["aten::b", "aten::a"]
    assert plain(growth.verdict).endswith(", 1.47 KiB. So are those of 1 other place.")
    assert plain(growth.verdict).startswith("Memory may leak by 601 B per step")


def test_the_headline_speaks_of_the_default_device_alone() -> None:
    cpu_leaks = "".join(f"\n{100 * i + 50} CPU c{i} 1000 {1000 * i} 0" for i in range(1, 6))
    trace = draw(STEPS, *memory(f"120 GPU0 a 8 8 0{cpu_leaks}"))
    payload = build(trace, NoParams())
    assert [growth.growing for growth in payload.growth] == [True, False]
    assert plain(payload.headline) == plain(payload.devices[1].headline)


def test_without_events_the_headline_names_the_option() -> None:
    assert plain(build(draw(CALLS), NoParams()).headline) == (
        "No memory events are recorded (`profile(profile_memory=True)`)."
    )


def test_names_of_a_trace_are_text() -> None:
    hostile = CALLS.replace("aten::relu", "{share}<img>&q=1")
    said = device("115 GPU0 a 64 64 64", hostile).headline
    assert "{share}<img>&q=1 holds 64 B" in plain(said)
    assert links(said)["{share}<img>&q=1"] == "memory?device=GPU+0&q=%7Bshare%7D%3Cimg%3E%26q%3D1"
