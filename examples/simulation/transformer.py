"""A step of a decoder-only transformer under DistributedDataParallel: what it calls, launches, and allocates.

Weights, activations and gradients are bfloat16; linear layers and norms have no bias, attention is causal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from simulation import kernels
from simulation.machine import AUTOGRAD, Process

Pending = tuple[dict[str, Any], float, int]
"""A collective that waits for the other ranks: its device event, when it could begin, its bytes."""
BUCKET_BYTES = 200 * 2**20


class Model(NamedTuple):
    """Sizes of the model and of a rank's batch."""

    layers: int = 4
    width: int = 4096
    heads: int = 32
    words: int = 32_000
    batch: int = 4
    length: int = 2048

    @property
    def tokens(self) -> int:
        return self.batch * self.length

    @property
    def parameters(self) -> int:
        return self.layers * (12 * self.width**2 + 2 * self.width) + self.width + 2 * self.words * self.width


class Node(NamedTuple):
    """A node of the autograd graph: what runs backward, and the elements of the parameter that gets a gradient."""

    name: str
    sequence: int
    run: Callable[[], None]
    parameter: int = 0


class Trainer:
    """One rank of the job: call `step` and answer what it yields."""

    def __init__(self, process: Process, model: Model, ranks: int) -> None:
        self._process, self._model, self._ranks = process, model, ranks
        self._sequence = 0
        self._graph: list[Node] = []
        self._modules: dict[str, int] = {}
        self._gradient = 0
        self._bucket: list[int] = []
        self._pending: list[Pending] = []
        # Weights, gradients and two moments.
        process.hold(4 * kernels.BYTES * model.parameters)

    def step(self, number: int, loading_ns: float) -> Iterator[list[Pending]]:
        """Run until the collectives of the backward pass must end, yield these, and run to the end."""
        process, model = self._process, self._model
        loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        with process.annotation(f"ProfilerStep#{number}"), process.frame("train.py(31): train_step"):
            with process.frame("torch/utils/data/dataloader.py(729): __next__"), process.annotation(loader):
                process.spend(loading_ns)
            tokens = self._batch()
            with process.annotation("DistributedDataParallel.forward", 20_000), self._module("GPT"):
                logits = self._forward()
            loss = self._loss(logits)
            with process.frame("torch/_tensor.py(592): backward", cost=30_000), process.thread(AUTOGRAD):
                self._backward(loss)
            yield self._pending
            self._pending = []
            process.wait_for_communication()
            with process.annotation("Optimizer.step#AdamW.step", 40_000):
                shapes = [[model.words, model.width], [model.words, model.width]]
                with process.operator("aten::_fused_adamw_", shapes, cost=60_000):
                    for _ in range(8):
                        process.launch(kernels.adamw(model.parameters // 8))
            with process.annotation("Optimizer.zero_grad#AdamW.zero_grad", 25_000):
                pass
            with process.frame("train.py(44): log_loss"):
                self._item()
            process.release(loss)
            process.release(tokens)

    def _batch(self) -> int:
        process, model = self._process, self._model
        shape = [[model.batch, model.length]]
        with process.operator("aten::to", shape, "int64"), process.operator("aten::_to_copy", shape, "int64"):
            tokens = process.allocate(8 * model.tokens)
            with process.operator("aten::copy_", [*shape, *shape], "int64"):
                process.copy("HtoD (Pinned -> Device)", 8 * model.tokens, 25)
        return tokens

    def _forward(self) -> int:
        process, model = self._process, self._model
        hidden = [model.batch, model.length, model.width]
        inputs = [[model.words, model.width], hidden[:2]]
        with self._module("Embedding"), process.operator("aten::embedding", inputs):
            stream = self._output(model.width)
            process.launch(kernels.embedding(model.tokens, model.width))
        self._node("EmbeddingBackward0", self._embedding_backward, stream, model.words * model.width)
        for layer in range(model.layers):
            with self._module("Block", layer):
                stream = self._block(stream)
        stream = self._norm(stream)
        return self._linear(stream, model.width, model.words)

    def _block(self, stream: int) -> int:
        width = self._model.width
        with self._module("Attention"):
            heads = self._attention(self._linear(self._norm(stream), width, 3 * width))
            update = self._linear(heads, width, width)
        stream = self._residual(update)
        with self._module("MLP"):
            inner = self._gelu(self._linear(self._norm(stream), width, 4 * width))
            update = self._linear(inner, 4 * width, width)
        return self._residual(update)

    def _linear(self, source: int, inner: int, columns: int) -> int:
        process, model = self._process, self._model
        rows = model.tokens
        shapes = [[rows, inner], [inner, columns]]
        inputs = [[model.batch, model.length, inner], [columns, inner]]
        with self._module("Linear"), process.operator("aten::linear", inputs):
            with process.operator("aten::t", [[columns, inner]], cost=3_000):
                pass
            with process.operator("aten::matmul", shapes), self._record_tracked("aten::mm", shapes):
                output = self._output(columns)
                process.launch(kernels.matrix_product(rows, inner, columns, "TNT"))

        def backward() -> None:
            incoming = self._gradient
            with process.operator("aten::mm", [[columns, rows], [rows, inner]]):
                weights = process.allocate(kernels.BYTES * columns * inner)
                process.launch(kernels.matrix_product(columns, rows, inner, "NTT"))
            with process.operator("aten::mm", [[rows, columns], [columns, inner]]):
                self._gradient = self._output(inner)
                process.launch(kernels.matrix_product(rows, columns, inner, "NNT"))
            process.release(incoming)
            process.release(weights)

        self._node("MmBackward0", backward, output, inner * columns)
        return output

    def _norm(self, source: int) -> int:
        process, model = self._process, self._model
        hidden = [model.batch, model.length, model.width]
        with self._module("LayerNorm"), process.operator("aten::layer_norm", [hidden, [], [model.width]]):
            with self._record_tracked("aten::native_layer_norm", [hidden, [], [model.width]]):
                output = self._output(model.width)
                process.launch(kernels.layer_norm(model.tokens, model.width))

        def backward() -> None:
            with process.operator("aten::native_layer_norm_backward", [hidden, hidden, [], [], [], [model.width]]):
                for kernel in kernels.layer_norm_backward(model.tokens, model.width):
                    process.launch(kernel)
            # The gradient of the residual stream joins in place.
            with process.operator("aten::add_", [hidden, hidden, []]):
                process.launch(kernels.elementwise("add", model.tokens * model.width, 2))

        self._node("NativeLayerNormBackward0", backward, output, model.width)
        return output

    def _attention(self, source: int) -> int:
        process, model = self._process, self._model
        size = model.width // model.heads
        shapes = [[model.batch, model.heads, model.length, size]] * 3
        flash = "aten::_scaled_dot_product_flash_attention"
        with process.operator("aten::scaled_dot_product_attention", shapes), self._record_tracked(flash, shapes):
            output = self._output(model.width)
            with process.operator("aten::_flash_attention_forward", shapes, cost=20_000):
                process.launch(kernels.attention(model.batch, model.heads, model.length, size))

        def backward() -> None:
            with process.operator(f"{flash}_backward", shapes * 2):
                with process.operator("aten::_flash_attention_backward", shapes * 2, cost=25_000):
                    for kernel in kernels.attention_backward(model.batch, model.heads, model.length, size):
                        process.launch(kernel)
            self._replace_gradient(3 * model.width)

        self._node("ScaledDotProductFlashAttentionBackward0", backward, output)
        return output

    def _gelu(self, source: int) -> int:
        process, model = self._process, self._model
        elements = model.tokens * 4 * model.width
        shape = [model.batch, model.length, 4 * model.width]
        with self._module("GELU"), self._record_tracked("aten::gelu", [shape]):
            output = self._output(4 * model.width)
            process.launch(kernels.elementwise("gelu", elements, 1))

        def backward() -> None:
            with process.operator("aten::gelu_backward", [shape, shape]):
                process.launch(kernels.elementwise("gelu_backward", elements, 2))

        self._node("GeluBackward0", backward, output)
        return output

    def _residual(self, update: int) -> int:
        process, model = self._process, self._model
        hidden = [model.batch, model.length, model.width]
        with process.operator("aten::add", [hidden, hidden, []]):
            output = self._output(model.width)
            process.launch(kernels.elementwise("add", model.tokens * model.width, 2))
        self._node("AddBackward0", lambda: None, output)
        return output

    def _embedding_backward(self) -> None:
        process, model = self._process, self._model
        with process.operator("aten::embedding_dense_backward", [[model.batch, model.length, model.width]]):
            process.launch(kernels.elementwise("fill", model.words * model.width, 0))
            process.launch(kernels.embedding_backward(model.tokens, model.width))

    def _loss(self, logits: int) -> int:
        process, model = self._process, self._model
        shape = [model.tokens, model.words]
        with self._module("CrossEntropyLoss"), process.operator("aten::cross_entropy_loss", [shape, shape[:1]]):
            with self._record_tracked("aten::log_softmax", [shape]):
                probabilities = self._output(model.words)
                process.launch(kernels.softmax(model.tokens, model.words))
            self._node("LogSoftmaxBackward0", self._softmax_backward, probabilities)
            with self._record_tracked("aten::nll_loss_forward", [shape, shape[:1]]):
                loss = process.allocate(512)
                process.launch(kernels.nll_loss(model.tokens))
            self._node("NllLossBackward0", self._nll_backward)
        return loss

    def _softmax_backward(self) -> None:
        shape = [self._model.tokens, self._model.words]
        with self._process.operator("aten::_log_softmax_backward_data", [shape, shape]):
            self._process.launch(kernels.softmax(shape[0], shape[1], backward=True))
        self._replace_gradient(self._model.words)

    def _nll_backward(self) -> None:
        shape = [self._model.tokens, self._model.words]
        with self._process.operator("aten::nll_loss_backward", [[], shape, shape[:1]]):
            self._process.launch(kernels.elementwise("fill", shape[0] * shape[1], 0))
            self._process.launch(kernels.nll_loss(self._model.tokens, backward=True))
        self._replace_gradient(self._model.words)

    def _backward(self, loss: int) -> None:
        process = self._process
        self._gradient = process.allocate(512)
        while self._graph:
            node = self._graph.pop()
            with process.operator(f"autograd::engine::evaluate_function: {node.name}", cost=4_000):
                tracked = {"Sequence number": node.sequence, "Fwd thread id": 1}
                with process.operator(node.name, [], cost=6_000, **tracked):
                    node.run()
            if node.parameter:
                self._accumulate(node.parameter)
        self._reduce()
        process.release(self._gradient)

    def _accumulate(self, elements: int) -> None:
        """Move the gradient to its bucket, and a full bucket to the other ranks."""
        process = self._process
        name = "torch::autograd::AccumulateGrad"
        with process.operator(f"autograd::engine::evaluate_function: {name}"), process.operator(name):
            with process.operator("torch::distributed::reducer::mul_out", [[elements], [], [elements]]):
                with process.operator("aten::mul", [[elements], []]):
                    process.launch(kernels.elementwise("mul", elements, 1))
        self._bucket.append(elements)
        if kernels.BYTES * sum(self._bucket) >= BUCKET_BYTES:
            self._reduce()

    def _reduce(self) -> None:
        process, elements = self._process, sum(self._bucket)
        if not elements:
            return
        self._bucket = []
        arguments: dict[str, object] = {
            "Collective name": "allreduce",
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "Group size": self._ranks,
            "dtype": "BFloat16",
            "In split size": "[]",
            "Out split size": "[]",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Process Group Ranks": str(list(range(self._ranks))),
        }
        with process.operator("c10d::allreduce_", [[elements]], cost=20_000):
            with process.operator("record_param_comms", [[elements]], cost=12_000, **arguments):
                with process.annotation("nccl:all_reduce"):
                    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                    event, ready = process.collective(name, arguments)
        self._pending.append((event, ready, kernels.BYTES * elements))

    def _item(self) -> None:
        process = self._process
        with process.operator("aten::item", [[]]), process.operator("aten::_local_scalar_dense", [[]]):
            process.copy("DtoH (Device -> Pinned)", 4, 25)
            process.synchronize()

    @contextmanager
    def _module(self, name: str, number: int | None = None) -> Iterator[None]:
        """Run a module; modules of a class are numbered in the order in which they first run."""
        index = self._modules.get(name, 0) if number is None else number
        self._modules[name] = (index + 1) % self._instances(name)
        with self._process.frame(f"nn.Module: {name}_{index}", index):
            yield

    def _instances(self, name: str) -> int:
        layers = self._model.layers
        each = {"Block": layers, "Attention": layers, "MLP": layers, "GELU": layers}
        return each.get(name) or {"Linear": 4 * layers + 1, "LayerNorm": 2 * layers + 1}.get(name, 1)

    @contextmanager
    def _record_tracked(self, name: str, shapes: list[list[int]]) -> Iterator[None]:
        """Record an operator that the autograd graph remembers around the body."""
        self._sequence += 1
        with self._process.operator(name, shapes, **{"Sequence number": self._sequence, "Fwd thread id": 0}):
            yield

    def _node(self, name: str, run: Callable[[], None], saved: int | None = None, parameter: int = 0) -> None:
        def and_forget() -> None:
            run()
            if saved is not None:
                self._process.release(saved)

        self._graph.append(Node(name, self._sequence, and_forget, parameter))

    def _output(self, columns: int) -> int:
        """Allocate a block for an activation of all tokens."""
        return self._process.allocate(kernels.BYTES * self._model.tokens * columns)

    def _replace_gradient(self, columns: int) -> None:
        incoming, self._gradient = self._gradient, self._output(columns)
        self._process.release(incoming)
