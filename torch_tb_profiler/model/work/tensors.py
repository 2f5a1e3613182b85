"""A recorded call of an operator: its tensors and values, read from the texts of a trace.

Input Dims       [[8, 16], [16, 4], [], [[2], [2]]]
Input type       ["float", "float", "Scalar", "TensorList"]
Input Strides    [[16, 1], [4, 1], [], [[1], [1]]]
Concrete Inputs  ["", "", "1", ""]

Ascend's profiler spells the first two as texts: 8,16;16,4; and float;float;Scalar
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from torch_tb_profiler.model.communication.dtypes import bytes_per_element
from torch_tb_profiler.model.work.cost import Unknown

_NO_TENSORS = {"", "Scalar", "ScalarList", "GenericList", "Int", "Double", "Bool", "Device", "Optional", "None"}
_LISTS = {"TensorList", "GenericList"}
_MOST = 2**62
"""Elements; a tensor with more is damage."""


class Tensor(msgspec.Struct, frozen=True):
    """A tensor as it was recorded.

    strides  in elements, None where the trace has none
    width    bytes of an element
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    type: str
    width: int

    @property
    def count(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes that hold it: a dimension of stride 0 (an expanded one) is one element there."""
        if self.strides is None or len(self.strides) != len(self.shape):
            return self.count * self.width
        distinct = (n if step or n == 0 else 1 for n, step in zip(self.shape, self.strides, strict=True))
        return math.prod(distinct) * self.width


class Call(NamedTuple):
    """A call of an operator, by position of its arguments.

    inputs  a tensor, a list of tensors, or None for what is no tensor (or was not given)
    values  what the trace spells of the others ("[1, 1]", "True"), "" where it spells nothing
    spelled the trace has values at all (`Concrete Inputs`; none before about 2023)
    kernel  name of the device work that it launched
    """

    name: str
    inputs: tuple[Tensor | tuple[Tensor, ...] | None, ...]
    values: tuple[str, ...]
    spelled: bool
    kernel: str

    def given(self, at: int) -> Tensor | None:
        """The tensor of an argument that may be left out."""
        tensor = self.inputs[at] if at < len(self.inputs) else None
        return tensor if isinstance(tensor, Tensor) else None

    def tensor(self, at: int) -> Tensor:
        """Unknown if the argument is no tensor."""
        tensor = self.given(at)
        if tensor is None:
            raise Unknown("the shapes of its inputs are not recorded")
        return tensor

    def tensors(self, at: int) -> tuple[Tensor, ...]:
        """Unknown if the argument is no list of tensors whose shapes are recorded."""
        tensors = self.inputs[at] if at < len(self.inputs) else None
        if not isinstance(tensors, tuple) or not tensors:
            raise Unknown("the shapes in its list of tensors are not recorded")
        return tensors

    def value(self, at: int) -> str:
        """The text of an argument, "" for None; Unknown if the trace spells no values."""
        if not self.spelled:
            raise Unknown("the values of its arguments are not recorded (`Concrete Inputs`)")
        return self.values[at] if at < len(self.values) else ""

    def flag(self, at: int) -> bool:
        return self.value(at) == "True"

    def numbers(self, at: int) -> tuple[int, ...]:
        """A list of integers; Unknown if the text is none."""
        try:
            numbers = json.loads(self.value(at) or "[]")
        except ValueError:
            numbers = None
        if isinstance(numbers, int):
            numbers = [numbers]
        if not isinstance(numbers, list) or not all(type(each) is int for each in numbers):
            raise Unknown("a value of its arguments cannot be read")
        return tuple(numbers)


def read_call(name: str, texts: Sequence[str | None], kernel: str) -> Call:
    """A call from the texts of dims, types, strides and concrete inputs; Unknown if shapes are missing."""
    dims, types, strides, values = (_list(text) for text in texts)
    if dims is None and types is None and texts[0] is not None and texts[1] is not None:
        dims, types = _spelled_with_semicolons(texts[0], texts[1])
    if dims is None or types is None:
        raise Unknown("the shapes of its inputs are not recorded (`record_shapes=True`)")
    inputs = []
    for at, shape in enumerate(dims):
        kind = types[at] if at < len(types) else ""
        steps = strides[at] if strides is not None and at < len(strides) else None
        inputs.append(_input(shape, kind if isinstance(kind, str) else "", steps, kernel))
    spelled = tuple(each if isinstance(each, str) else "" for each in values or ())
    return Call(name, tuple(inputs), spelled, values is not None, kernel)


def _list(text: str | None) -> list[object] | None:
    try:
        value = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


_SIZES = re.compile(r"(?:\d{1,18}(?:,\d{1,18})*)?")


def _spelled_with_semicolons(dims: str, types: str) -> tuple[list[object] | None, list[object] | None]:
    """(shapes, types) as Ascend's profiler spells them; None where a shape is none."""
    shapes = [each.strip() for each in dims.split(";")]
    if not dims.strip() or not all(_SIZES.fullmatch(shape) for shape in shapes):
        return None, None
    return [[int(size) for size in shape.split(",") if size] for shape in shapes], [*types.split(";")]


def _input(shape: object, kind: str, strides: object, kernel: str) -> Tensor | tuple[Tensor, ...] | None:
    if not isinstance(shape, list):
        return None
    if kind in _LISTS and shape and all(isinstance(each, list) for each in shape):
        steps = strides if isinstance(strides, list) and len(strides) == len(shape) else [None] * len(shape)
        element = type_in_kernel(kernel)
        members = [_tensor(each, element, step) for each, step in zip(shape, steps, strict=True)]
        tensors = tuple(each for each in members if each is not None)
        return tensors if len(tensors) == len(members) else None
    return None if kind in _NO_TENSORS or kind in _LISTS else _tensor(shape, kind, strides)


def _tensor(shape: object, kind: str | None, strides: object) -> Tensor | None:
    width = bytes_per_element(kind) if kind else None
    counts = _counts(shape)
    if counts is None or width is None or kind is None:
        return None
    return Tensor(counts, _counts(strides), kind, width)


def _counts(values: object) -> tuple[int, ...] | None:
    """Sizes that a tensor can have."""
    if not isinstance(values, list) or not all(type(each) is int and each >= 0 for each in values):
        return None
    return tuple(values) if math.prod(values) < _MOST else None


_IN_KERNEL = (
    ("OpaqueType<1", "byte"), ("OpaqueType<2", "half"), ("OpaqueType<4", "float"), ("OpaqueType<8", "double"),
    ("c10::BFloat16", "c10::BFloat16"), ("__hip_bfloat16", "c10::BFloat16"), ("c10::Half", "c10::Half"),
    ("double", "double"), ("float", "float"), ("long", "long int"),
)  # fmt: skip


def type_in_kernel(kernel: str) -> str | None:
    """The element type that a kernel's template arguments name first; lists of tensors record no type.

    OpaqueType<2u> is any type of two bytes.
    """
    places = [(kernel.find(text, kernel.find("<")), kind) for text, kind in _IN_KERNEL]
    present = [place for place in places if place[0] >= 0]
    return min(present)[1] if "<" in kernel and present else None
