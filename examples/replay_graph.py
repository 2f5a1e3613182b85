"""Decodes with a CUDA graph: records the capture and the replays, on a GPU.

    python examples/replay_graph.py --logdir log/graph_replay

In the trace of the replays no operator, module or line is recorded. Origins finds them in the trace of the
capture, which lies in `capture_traces/`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

VOCABULARY = 32_000


class Attention(nn.Module):
    """Attention of one new token for each request over the keys and values of all tokens before it."""

    def __init__(self, width: int, heads: int, batch: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        shape = (batch, heads, length, width // heads)
        self.register_buffer("keys", torch.randn(shape))
        self.register_buffer("values", torch.randn(shape))

    def forward(self, x: Tensor, place: Tensor) -> Tensor:
        batch, width = x.shape
        query, key, value = self.qkv(x).view(batch, 3, self.heads, 1, -1).unbind(1)
        self.keys.index_copy_(2, place, key)
        self.values.index_copy_(2, place, value)
        attended = scaled_dot_product_attention(query, self.keys, self.values)
        return self.out(attended.reshape(batch, width))


class FeedForward(nn.Module):
    """Two products, one of which gates the other, and a third one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate_up = nn.Linear(width, 8 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(silu(gate) * up)


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight.shape, self.weight)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, batch: int, length: int) -> None:
        super().__init__()
        self.norm_1, self.attention = Norm(width), Attention(width, heads, batch, length)
        self.norm_2, self.feed_forward = Norm(width), FeedForward(width)

    def forward(self, x: Tensor, place: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x), place)
        return x + self.feed_forward(self.norm_2(x))


class Decoder(nn.Module):
    """An embedding, blocks, and the most likely next token."""

    def __init__(self, width: int, layers: int, heads: int, batch: int, length: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width, heads, batch, length) for _ in range(layers))
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor, place: Tensor) -> Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, place)
        return self.head(x).argmax(-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logdir", type=Path, default=Path("log/graph_replay"))
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=1024, help="tokens in the cache of keys and values")
    parser.add_argument("--steps", type=int, default=12, help="steps to record")
    options = parser.parse_args()

    torch.manual_seed(0)
    # Creates everything on the GPU, in bfloat16.
    torch.set_default_device("cuda")
    torch.set_default_dtype(torch.bfloat16)
    decoder = Decoder(options.width, options.layers, options.width // 128, options.batch, options.length).eval()
    tokens = torch.zeros(options.batch, dtype=torch.long)
    place = torch.zeros(1, dtype=torch.long)
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with torch.inference_mode():
        decoder(tokens, place)  # loads the kernels, which a capture cannot
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        captures = options.logdir / "capture_traces"
        captures.mkdir(parents=True, exist_ok=True)
        with (
            profile(activities=activities, record_shapes=True, with_stack=True, with_modules=True) as prof,
            torch.cuda.graph(graph),
        ):
            made = decoder(tokens, place)
        prof.export_chrome_trace(str(captures / f"bs_{options.batch}_rank0.json.gz"))
        with profile(
            activities=activities,
            schedule=schedule(wait=1, warmup=1, active=options.steps, repeat=1),
            on_trace_ready=tensorboard_trace_handler(str(options.logdir), worker_name="rank0", use_gzip=True),
            record_shapes=True,
        ) as prof:
            for number in range(options.steps + 2):
                with record_function("copy_inputs"):
                    place.fill_(number)
                graph.replay()
                with record_function("read_tokens"):
                    chosen = made.tolist()
                tokens.copy_(torch.tensor(chosen, device="cpu"))
                prof.step()
    print(f"the capture and the replays were written to {options.logdir}")


if __name__ == "__main__":
    main()
