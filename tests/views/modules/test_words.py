from __future__ import annotations

import pytest

from tests.support.recordings import TRAINING
from tests.support.traces import draw
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.modules import ModuleClass, UnplacedWork, modules_details, modules_headline
from torch_tb_profiler.views._shared.text import Text, plain
from torch_tb_profiler.views.modules import ModulesPayload, build

NOTHING = UnplacedWork(0, 0)


def payload_of(picture: str) -> ModulesPayload:
    return build(draw(picture), NoParams())


def links(text: Text) -> dict[str, str]:
    return {phrase.text: phrase.link for phrase in text if phrase.link is not None}


def module_class(name: str, **given: int) -> ModuleClass:
    figures = {
        "modules": 1,
        "calls": 1,
        "operators": 1,
        "device_self_ns": 0,
        "forward_device_self_ns": 0,
        "backward_device_self_ns": 0,
        "host_exclusive_ns": 0,
        "backward_host_self_ns": 0,
        "place": 0,
    }
    return ModuleClass(name, **{**figures, **given}, families=[], speed=None)


def test_the_class_with_the_most_device_time_and_where_the_rest_is() -> None:
    payload = payload_of(TRAINING)
    assert plain(payload.headline) == "Linear is the top module: 94% of module GPU time."
    assert links(payload.headline) == {"Linear": "modules?place=1"}
    assert plain(payload.details) == (
        "Forward takes 57.0 µs, backward 60.0 µs. 2.5% of GPU time was launched outside any module and "
        "1.6% of GPU time has no recorded launch."
    )


def test_without_a_device_it_is_about_the_host() -> None:
    payload = payload_of("""
    host  python_function  nn.Module:~Net_0     0  100
    host  python_function  nn.Module:~Linear_0 10   80
    host  cpu_op           aten::addmm         20   40
    """)
    assert plain(payload.headline) == "Linear is the top module: 80% of module host time."
    assert payload.details == ()


def test_several_modules_of_a_class_lead_to_the_table_by_class() -> None:
    rows = [
        module_class("Net", host_exclusive_ns=10),
        module_class("torch.nn.Linear", modules=1200, host_exclusive_ns=20, backward_host_self_ns=10, place=7),
    ]
    expected = modules_headline("lightning", rows, None)
    assert plain(expected) == "The 1,200 Linear modules make up 75% of module host time."
    assert links(expected) == {"1,200 Linear modules": "lightning?group_by=class&place=7"}


@pytest.mark.parametrize(
    ("device", "expected"),
    [("NPU", "No NPU work was launched inside a module."), (None, "No time was recorded in modules.")],
)
def test_modules_without_time(device: str | None, expected: str) -> None:
    assert plain(modules_headline("modules", [module_class("Net")], device)) == expected
    assert plain(modules_headline("modules", [], device)) == expected


def test_host_time_does_not_count_where_there_is_a_device() -> None:
    rows = [module_class("Host", host_exclusive_ns=90), module_class("Device", device_self_ns=1)]
    assert plain(modules_headline("modules", rows, "GPU")).startswith("Device is the top module: 100%")


@pytest.mark.parametrize(
    ("device_ns", "outside", "unlinked", "expected"),
    [
        (0, 0, 0, "Forward takes 3.00 µs, backward 4.00 µs."),
        (100, 0, 0, "Forward takes 1.00 µs, backward 2.00 µs. All GPU work was launched in modules."),
        (100, 0, 5, "Forward takes 1.00 µs, backward 2.00 µs. 5% of GPU time has no recorded launch."),
    ],
)
def test_forward_and_backward_are_those_of_the_device_if_there_is_one(
    device_ns: int, outside: int, unlinked: int, expected: str
) -> None:
    rows = [
        module_class(
            "Net",
            forward_device_self_ns=1000,
            backward_device_self_ns=2000,
            host_exclusive_ns=3000,
            backward_host_self_ns=4000,
        )
    ]
    details = modules_details(rows, True, "GPU", device_ns, UnplacedWork(1, outside), UnplacedWork(1, unlinked))
    assert plain(details) == expected


def test_without_backward_there_is_no_split() -> None:
    assert modules_details([module_class("Net", host_exclusive_ns=5)], False, None, 0, NOTHING, NOTHING) == ()
