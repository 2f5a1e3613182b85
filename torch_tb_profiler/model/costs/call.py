"""A recorded call of an operator: its tensors and values, read from the texts of a trace, and its cost.

Input Dims       [[8, 16], [16, 4], [], [[2], [2]]]
Input type       ["float", "float", "Scalar", "TensorList"]
Input Strides    [[16, 1], [4, 1], [], [[1], [1]]]
Concrete Inputs  ["", "", "1", ""]

Ascend's profiler writes the first two as texts: 8,16;16,4; and float;float;Scalar
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, cast

import msgspec
from msgspec.json import Decoder

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.dtypes import Unit, bytes_per_element

_NUMBERS = {"Int", "Double", "Bool"}
"""Types of numbers, which are named like elements of tensors."""

_LISTS = {"TensorList", "GenericList"}
_MAX_ELEMENTS = 2**62
"""A tensor of this many elements or more is damage."""

_NO_JSON = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)

_KNOWN_TEXTS = 4096
"""Texts of arguments that were read lately and are kept: calls with other values have the same shapes."""

_Sizes = tuple[int, ...]
_Shape = _Sizes | list[_Sizes | None] | None
"""Sizes (or strides) of a tensor, or of each in a list; None for what no tensor can have."""

_Typed = tuple[int, str, int | None]
"""Position of a tensor among the inputs, its element type and the bytes of one; None for a list of tensors."""

_PLAIN_SHAPES = Decoder(tuple[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], ...])
_PLAIN_VALUES = Decoder(tuple[str, ...])
"""Most texts: they are read several times as fast as those with lists of tensors or with damage."""

_ASCEND_SIZES = lazy_regex(r"(?:\d{1,18}(?:,\d{1,18})*)?")

_TYPES_IN_KERNELS = (
    ("OpaqueType<1", "byte"), ("OpaqueType<2", "half"), ("OpaqueType<4", "float"), ("OpaqueType<8", "double"),
    ("c10::BFloat16", "c10::BFloat16"), ("__hip_bfloat16", "c10::BFloat16"), ("c10::Half", "c10::Half"),
    ("double", "double"), ("float", "float"), ("long", "long int"),
)  # fmt: skip
"""Text in a kernel's template arguments -> element type; OpaqueType<2u> is any type of two bytes."""


class UnknownCostError(Exception):
    """Raised where the cost of a call is unknown; `args[0]` is the reason."""


class Cost(msgspec.Struct, frozen=True):
    """Work of one call.

    flops      executed; None if unknown
    bytes      of device memory read and written, every tensor once; None if unknown
    unit       what does the arithmetic; None without any
    type       element type of the inputs, as the trace spells it
    model      FLOPs that the mathematics needs, where fewer than executed (attention's backward)
    estimated  the bytes are estimated from the arguments
    reason     why FLOPs or bytes are unknown
    """

    flops: float | None
    bytes: float | None
    unit: Unit | None = None
    type: str = ""
    model: float | None = None
    estimated: bool = False
    reason: str | None = None

    @property
    def needed(self) -> float | None:
        """Return the FLOPs that the mathematics needs."""
        return self.flops if self.model is None else self.model


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
        """Return the number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Return the bytes that store it: a dimension of stride 0 (an expanded one) stores one element."""
        if self.strides is None or len(self.strides) != len(self.shape):
            return self.count * self.width
        sizes = (n if stride or n == 0 else 1 for n, stride in zip(self.shape, self.strides, strict=True))
        return math.prod(sizes) * self.width


class OperatorCall(msgspec.Struct, frozen=True):
    """A call of an operator; inputs and values are by position of the arguments.

    inputs      a tensor, a list of tensors, or None for an argument that is no tensor (or not passed)
    values      text of the others in the trace ("[1, 1]", "True"), "" where it has none
    has_values  the trace has values at all (`Concrete Inputs`; none before about 2023)
    kernel      name of the device work that it launched
    """

    name: str
    inputs: tuple[Tensor | tuple[Tensor, ...] | None, ...]
    values: tuple[str, ...]
    has_values: bool
    kernel: str

    def optional_tensor(self, position: int) -> Tensor | None:
        """Return the tensor of an argument, or None if it is left out."""
        tensor = self.inputs[position] if position < len(self.inputs) else None
        return tensor if isinstance(tensor, Tensor) else None

    def tensor(self, position: int) -> Tensor:
        """Return the tensor of an argument; raise UnknownCostError if it is none."""
        tensor = self.optional_tensor(position)
        if tensor is None:
            raise UnknownCostError("the shapes of its inputs are not recorded")
        return tensor

    def tensor_list(self, position: int) -> tuple[Tensor, ...]:
        """Return the list of tensors of an argument; raise UnknownCostError if their shapes aren't recorded."""
        tensors = self.inputs[position] if position < len(self.inputs) else None
        if not isinstance(tensors, tuple) or not tensors:
            raise UnknownCostError("the shapes in its list of tensors are not recorded")
        return tensors

    def value(self, position: int) -> str:
        """Return the text of an argument, "" for None; raise UnknownCostError if the trace has no values."""
        if not self.has_values:
            raise UnknownCostError("the values of its arguments are not recorded (`Concrete Inputs`)")
        return self.values[position] if position < len(self.values) else ""

    def flag(self, position: int) -> bool:
        return self.value(position) == "True"

    def integers(self, position: int) -> tuple[int, ...]:
        """Return an integer or a list of them; raise UnknownCostError if the text is neither."""
        try:
            numbers = json.loads(self.value(position) or "[]")
        except ValueError:
            numbers = None
        if isinstance(numbers, int):
            numbers = [numbers]
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise UnknownCostError("a value of its arguments can't be read")
        return tuple(numbers)


def read_call(name: str, texts: Sequence[str | None], kernel: str) -> OperatorCall:
    """Read a call from the texts of dims, types, strides and concrete inputs.

    Raise UnknownCostError if the shapes are missing.
    """
    dims, types, strides, values = texts
    # Only lists of tensors have their type from the kernel; a backslash may spell their name.
    has_lists = types is not None and ("List" in types or "\\" in types)
    inputs = _read_inputs(dims, types, strides, element_type_in_kernel(kernel) if has_lists else None)
    if inputs is None:
        raise UnknownCostError("the shapes of its inputs are not recorded (`record_shapes=True`)")
    value_texts = _read_values(values)
    return OperatorCall(name, inputs, value_texts or (), value_texts is not None, kernel)


@lru_cache(_KNOWN_TEXTS)
def _read_inputs(
    dims_text: str | None, types_text: str | None, strides_text: str | None, element: str | None
) -> tuple[Tensor | tuple[Tensor, ...] | None, ...] | None:
    """Return the inputs of a call, None if the shapes are missing; `element` is the type in lists of tensors."""
    shapes, tensors, strides = _read_shapes(dims_text), _find_tensors(types_text), _read_shapes(strides_text)
    if shapes is None and tensors is None and dims_text is not None and types_text is not None:
        shapes, tensors = _read_ascend_inputs(dims_text, types_text)
    if shapes is None or tensors is None:
        return None
    inputs: list[Tensor | tuple[Tensor, ...] | None] = [None] * len(shapes)
    for position, kind, width in tensors:
        if position >= len(shapes):
            break
        shape = shapes[position]
        steps = strides[position] if strides is not None and position < len(strides) else None
        if width is None:
            inputs[position] = _read_list(shape, element, steps)
        elif isinstance(shape, tuple) and math.prod(shape) < _MAX_ELEMENTS:
            inputs[position] = Tensor(shape, steps if isinstance(steps, tuple) else None, kind, width)
    return tuple(inputs)


@lru_cache(_KNOWN_TEXTS)
def _read_values(text: str | None) -> tuple[str, ...] | None:
    """Return the texts of the arguments that are no tensors, None if the trace has none."""
    try:
        return _PLAIN_VALUES.decode(text) if text else None
    except _NO_JSON:
        values = _parse_list(text)
    return None if values is None else tuple(value if isinstance(value, str) else "" for value in values)


def _parse_list(text: str | None) -> list[object] | None:
    try:
        value = msgspec.json.decode(text) if text else None
    except _NO_JSON:
        return None
    return value if isinstance(value, list) else None


def _read_shapes(text: str | None) -> Sequence[_Shape] | None:
    """Return the sizes (or strides) of each input, of a list of tensors those of each; None if there are none."""
    try:
        return _PLAIN_SHAPES.decode(text) if text else None
    except _NO_JSON:
        values = _parse_list(text)
    return None if values is None else [_read_shape(value) for value in values]


def _read_shape(value: object) -> _Shape:
    if isinstance(value, list) and value and all(isinstance(member, list) for member in value):
        return [_read_sizes(member) for member in value]
    return _read_sizes(value)


def _read_sizes(values: object) -> _Sizes | None:
    """Return the sizes (or strides) as a tuple, or None if a tensor can't have them."""
    is_valid = isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
    return tuple(cast(list[int], values)) if is_valid else None


@lru_cache(_KNOWN_TEXTS)
def _find_tensors(types_text: str | None) -> list[_Typed] | None:
    """Return which inputs are tensors or lists of them by their types, None if these are missing."""
    types = _parse_list(types_text)
    return None if types is None else _find_typed(types)


def _find_typed(types: Sequence[object]) -> list[_Typed]:
    found: list[_Typed] = []
    for position, kind in enumerate(types):
        if not isinstance(kind, str) or kind in _NUMBERS:
            continue
        width = bytes_per_element(kind)
        if width is not None or kind in _LISTS:
            found.append((position, kind, width))
    return found


def _read_ascend_inputs(dims: str, types: str) -> tuple[list[_Sizes] | None, list[_Typed] | None]:
    """Return (shapes, types) from the texts of Ascend's profiler, or None twice if a shape is invalid."""
    shapes = [shape.strip() for shape in dims.split(";")]
    if not dims.strip() or not all(_ASCEND_SIZES.fullmatch(shape) for shape in shapes):
        return None, None
    sizes = [tuple(int(size) for size in shape.split(",") if size) for shape in shapes]
    return sizes, _find_typed(types.split(";"))


def _read_list(shapes: _Shape, element: str | None, strides: _Shape) -> tuple[Tensor, ...] | None:
    """Return the tensors of a list, None if one of them is unknown."""
    width = bytes_per_element(element) if element else None
    if not isinstance(shapes, list) or width is None or element is None:
        return None
    steps = strides if isinstance(strides, list) and len(strides) == len(shapes) else [None] * len(shapes)
    tensors = [
        Tensor(shape, step, element, width)
        for shape, step in zip(shapes, steps, strict=True)
        if shape is not None and math.prod(shape) < _MAX_ELEMENTS
    ]
    return tuple(tensors) if len(tensors) == len(shapes) else None


def element_type_in_kernel(kernel: str) -> str | None:
    """Return the first element type in a kernel's template arguments; lists of tensors record no type."""
    places = [(kernel.find(text, kernel.find("<")), kind) for text, kind in _TYPES_IN_KERNELS]
    found = [place for place in places if place[0] >= 0]
    return min(found)[1] if "<" in kernel and found else None
