"""The structure of a type as text: equal in every process and Python, another one when a field changes.

    class Point(msgspec.Struct):
        x: Annotated[int, Meta(ge=0)]          Point(x: int, label: None | str)
        label: str | None = None

Bytes that hold an array say its dtype: `Annotated[bytes, DTYPE]`. Docstrings, defaults, limits of values and
private fields are not structure: what is written with one can be read with another.
"""

from __future__ import annotations

import types
from dataclasses import is_dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np


def structure_of(*hints: Any) -> str:
    """The structure of some types; a class is spelled out where it comes first, then named."""
    spelled: set[type] = set()
    return "; ".join(_spell(hint, spelled) for hint in hints)


def _spell(hint: Any, spelled: set[type]) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is None or hint is types.NoneType:
        return "None"
    if origin is Literal:
        return f"Literal[{', '.join(sorted(map(repr, arguments)))}]"
    if origin is Annotated:
        layouts = [str(each.descr) for each in hint.__metadata__ if isinstance(each, np.dtype)]
        return "".join([_spell(arguments[0], spelled), *layouts])
    if origin in (Union, types.UnionType):
        return " | ".join(sorted(_spell(each, spelled) for each in arguments))
    if hasattr(origin, "__value__"):  # an alias by `type`, as newer versions of numpy have for arrays
        return _spell(origin.__value__[arguments], spelled)
    if origin is np.ndarray:  # its first argument, the shape, depends on the version of numpy
        return f"array[{_spell(get_args(arguments[1])[0], spelled)}]"
    if origin is not None:
        return f"{_spell(origin, spelled)}[{', '.join(_spell(each, spelled) for each in arguments)}]"
    if not isinstance(hint, type):
        return "..." if hint is Ellipsis else str(hint).removeprefix("typing.")
    return _spell_class(hint, spelled)


def _spell_class(cls: type, spelled: set[type]) -> str:
    name = cls.__qualname__
    if cls in spelled:
        return name
    spelled.add(cls)
    if issubclass(cls, Enum):
        return f"{name}({', '.join(f'{member.name}={member.value!r}' for member in cls)})"
    if is_dataclass(cls) or issubclass(cls, msgspec.Struct):
        fields = {
            field: hint
            for field, hint in get_type_hints(cls, include_extras=True).items()
            if not field.startswith("_")
        }
        return f"{name}({', '.join(f'{field}: {_spell(hint, spelled)}' for field, hint in fields.items())})"
    return name
