import numpy as np

from tests.support.traces import draw
from torch_tb_profiler.analyses.timeline.colors import color_codes


def test_a_name_has_one_color_in_every_trace() -> None:
    one = draw("""
    host  cpu_op  aten::mm   0  10
    host  cpu_op  aten::add  20 10
    host  cpu_op  aten::mm   40 10
    """)
    other = draw("""
    host  cpu_op  aten::relu 0  10
    host  cpu_op  aten::add  20 10
    host  cpu_op  aten::mm   40 10
    """)
    rows = np.arange(3, dtype=np.int32)
    mm, add, again = color_codes(one, rows, "name").tolist()
    relu, same_add, same_mm = color_codes(other, rows, "name").tolist()
    assert mm == again == same_mm
    assert add == same_add
    assert len({mm, add, relu, 0}) == 4
    assert one.strings[one.events.name[1]] == other.strings[other.events.name[1]] == "aten::add"
