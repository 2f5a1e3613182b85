"""The checks of a diff as a JUnit report."""

from __future__ import annotations

from xml.etree import ElementTree

from torch_tb_profiler.cli.diff._words import answer
from torch_tb_profiler.views.diff.gate import Check, describe_change
from torch_tb_profiler.views.diff.payload import DiffPayload


def junit(diff: DiffPayload, gate: list[Check]) -> str:
    """A test case per check; without any, the step's time as the only one."""
    open_ = diff.step.verdict in ("cannot_tell", "unknown")
    cases = gate or [Check("step time", None if open_ else True, describe_change(diff.step))]
    failures, skipped = (sum(case.passed is state for case in cases) for state in (False, None))
    suite = ElementTree.Element(
        "testsuite",
        name="torch-tb-profiler diff",
        tests=str(len(cases)),
        failures=str(failures),
        errors="0",
        skipped=str(skipped),
        time="0",
    )
    for case in cases:
        node = ElementTree.SubElement(
            suite, "testcase", classname="torch-tb-profiler.diff", name=_clean(case.name), time="0"
        )
        if case.passed is False:
            ElementTree.SubElement(node, "failure", message=_clean(case.message), type="regression")
        elif case.passed is None:
            ElementTree.SubElement(node, "skipped", message=_clean(case.message))
    ElementTree.SubElement(suite, "system-out").text = _clean("\n".join(answer(diff)))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _clean(text: str) -> str:
    """Without characters that XML cannot hold."""
    return "".join(
        c if c in "\t\n\r" or 0x20 <= ord(c) < 0xD800 or 0xE000 <= ord(c) < 0xFFFE or ord(c) > 0xFFFF else "�"
        for c in text
    )
