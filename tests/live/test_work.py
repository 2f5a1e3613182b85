"""FLOPs of live models beside PyTorch's own counter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.costs.call import read_call
from torch_tb_profiler.model.costs.models import built_in_cost_model
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import Trace

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]

KEYS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")


def count_flops(run: Callable[[], None], path: Path) -> tuple[float, float]:
    """Return (FLOPs by PyTorch's counter, FLOPs of the matrix operators in the trace of the same code)."""
    from torch.profiler import ProfilerActivity, profile
    from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

    # The counter knows attention of the GPUs; that of CPUs takes the same arguments first.
    def attention(q: Any, k: Any, v: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
        return int(sdpa_flop_count(q, k, v))  # type: ignore[no-untyped-call]

    def attention_backward(grad: Any, q: Any, k: Any, v: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
        return int(sdpa_backward_flop_count(grad, q, k, v))  # type: ignore[no-untyped-call]

    aten = torch.ops.aten
    more = {
        aten._scaled_dot_product_flash_attention_for_cpu: attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
    }
    with FlopCounterMode(display=False, custom_mapping=more) as counter:
        run()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        run()
    profiler.export_chrome_trace(str(path))
    with path.open("rb") as stream:
        return float(counter.get_total_flops()), innermost_flops(read_trace(stream, size=path.stat().st_size))


def innermost_flops(trace: Trace) -> float:
    """Sum the FLOPs of every modeled operator that has none inside; a CPU has no kernels to own them."""
    rows = rows_of_kind(trace, Kind.CPU_OP)
    models = {int(row): built_in_cost_model(trace.strings[trace.events.name[row]]) for row in rows}
    matrix = [row for row, model in models.items() if model is not None and model.family == "matrix"]
    around, outer = enclosing_operators(trace), set()
    for row in matrix:
        above = int(around[row])
        while above >= 0:
            outer.add(above)
            above = int(around[above])
    total = 0.0
    for row in set(matrix) - outer:
        model = models[row]
        assert model is not None
        columns = [trace.arg_codes(key, np.array([row], np.int32)) for key in KEYS]
        texts = [texts[codes[0]] if codes[0] >= 0 else None for codes, texts in columns]
        total += model.cost(read_call(trace.strings[trace.events.name[row]], texts, "")).flops or 0.0
    return total


class TransformerLayer(torch.nn.Module):  # type: ignore[name-defined]
    """A layer of a transformer."""

    def __init__(self, size: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.inward = torch.nn.Linear(size, 3 * size)
        self.outward = torch.nn.Linear(size, size)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(size, 4 * size), torch.nn.GELU(), torch.nn.Linear(4 * size, size)
        )

    def forward(self, x: Any) -> Any:
        batch, tokens, size = x.shape
        q, k, v = (
            each.view(batch, tokens, self.heads, -1).transpose(1, 2) for each in self.inward(x).chunk(3, dim=-1)
        )
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.outward(mixed.transpose(1, 2).reshape(batch, tokens, size))
        return x + self.mlp(x)


def test_a_convolutional_network(tmp_path: Path) -> None:
    """Equal, but that the counter takes the gradient of a grouped weight for that of a full one."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, padding="same", groups=4, bias=False),
        torch.nn.Conv2d(16, 16, 3, dilation=2),
        torch.nn.ConvTranspose2d(16, 4, 4, stride=2, padding=1, output_padding=1),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 10),
    )

    def train() -> None:
        model(torch.randn(2, 3, 32, 32)).square().mean().backward()

    theirs, ours = count_flops(train, tmp_path / "trace.json")
    grouped = 2 * (2 * 9) * (2 * 16 * 16 * 16)  # forward: 8 / 4 channels a group, 3 x 3, 16 channels of 16 x 16
    assert ours == theirs - (4 - 1) * grouped


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_a_transformer(tmp_path: Path, causal: bool) -> None:
    """Equal, but that the counter takes causal attention for full."""
    batch, tokens, size, heads, layers = 2, 24, 32, 4, 2
    model = torch.nn.Sequential(*(TransformerLayer(size, heads, causal) for _ in range(layers)))

    def train() -> None:
        model(torch.randn(batch, tokens, size)).square().mean().backward()

    theirs, ours = count_flops(train, tmp_path / "trace.json")
    head = size // heads
    pairs = layers * batch * heads * tokens * tokens
    attention = 2 * pairs * (2 * head + 5 * head)  # two products forward, five backward
    assert theirs > attention
    assert ours == theirs - (attention / 2 if causal else 0)
