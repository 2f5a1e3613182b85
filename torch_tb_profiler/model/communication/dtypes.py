"""How many bytes an element of a tensor takes, by every name a trace gives its type."""

from __future__ import annotations

import re

# Without case, "c10::", underscores and spaces. Collectives say `BFloat16`, operators `c10::BFloat16`.
_BYTES = {
    "bool": 1, "byte": 1, "char": 1, "unsignedchar": 1, "signedchar": 1, "int8": 1, "uint8": 1,
    "short": 2, "shortint": 2, "unsignedshort": 2, "int16": 2, "uint16": 2,
    "half": 2, "bfloat16": 2, "float16": 2,
    "int": 4, "unsignedint": 4, "int32": 4, "uint32": 4, "float": 4, "float32": 4,
    "long": 8, "longint": 8, "longlong": 8, "unsignedlong": 8, "unsignedlongint": 8, "int64": 8, "uint64": 8,
    "double": 8, "float64": 8,
    "complexhalf": 4, "complex<half>": 4, "complex32": 4,
    "complexfloat": 8, "complex<float>": 8, "complex64": 8,
    "complexdouble": 16, "complex<double>": 16, "complex128": 16,
    "qint8": 1, "quint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1,
    "bits1x8": 1, "bits2x4": 1, "bits4x2": 1, "bits8": 1, "bits16": 2,
}  # fmt: skip
_ONE_BYTE_FLOATS = re.compile(r"float(?:8|4)e\d")


def bytes_per_element(name: str) -> int | None:
    """Bytes of one element; None for a type that is not known (and for lists of tensors)."""
    plain = re.sub(r"c10::|at::|torch\.|[_\s]", "", name.lower())
    if _ONE_BYTE_FLOATS.match(plain):
        return 1  # float4 comes as pairs
    return _BYTES.get(plain)
