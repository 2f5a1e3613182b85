"""Formulas for the work of an operator, written by users: arithmetic on the sizes that a call recorded.

2 * dims[0][0] * dims[0][1] * dims[1][1]      bytes[0] + bytes[1] + 4 * elements[0]
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

FORMULA_NAMES = ("dims", "elements", "bytes", "values")
FORMULA_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "prod": lambda sizes: math.prod(sizes),
}
MAX_FORMULA_LENGTH = 1000
"""Maximum length of a formula in characters."""

_OPERATIONS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
}
_MAX_VALUE = 1e30
"""Upper bound of a formula's value; more indicates damaged sizes."""


@lru_cache(maxsize=256)
def parse_formula(text: str) -> ast.expr:
    """Parse a formula; raise ValueError with the reason if it isn't one."""
    if len(text) > MAX_FORMULA_LENGTH:
        raise ValueError(f"the formula has {len(text):,} characters; the limit is {MAX_FORMULA_LENGTH:,}")
    try:
        expression = ast.parse(text.strip(), mode="eval").body
        _check(expression)
    except SyntaxError as error:
        raise ValueError(f"{text!r} is not a formula: {error.msg}") from error
    except (RecursionError, MemoryError) as error:
        raise ValueError("the formula is nested too deeply") from error
    return expression


def _check(node: ast.expr) -> None:
    """Raise ValueError unless the node consists of numbers, names, their items, operations, and functions."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        _check(node.left)
        _check(node.right)
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATIONS:
        _check(node.operand)
    elif isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Name, ast.Subscript)):
        _check(node.value)
        _check(node.slice)
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in FORMULA_FUNCTIONS
        and not node.keywords
    ):
        for argument in node.args:
            _check(argument)
    elif not isinstance(node, ast.Name) or node.id not in FORMULA_NAMES:
        allowed = f"numbers, + - * / // %, {', '.join(FORMULA_NAMES)}, {', '.join(FORMULA_FUNCTIONS)}"
        raise ValueError(f"{ast.unparse(node)!r} isn't allowed in a formula (allowed: {allowed})")


def evaluate_formula(text: str, names: Mapping[str, Any]) -> float:
    """Return the value of a formula, at least 0; raise ValueError with the reason if it has none.

    names  a list of numbers, or of lists of numbers, for each of FORMULA_NAMES
    """
    try:
        value = float(_value(parse_formula(text), names))
    except (IndexError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"the formula {text!r} has no value for its inputs: {error}") from error
    if not 0 <= value < _MAX_VALUE:
        raise ValueError(f"the formula {text!r} gives {value:g} for its inputs")
    return value


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return names[node.id]
        case ast.Subscript():
            return _value(node.value, names)[_value(node.slice, names)]
        case ast.UnaryOp():
            return _OPERATIONS[type(node.op)](_value(node.operand, names))
        case ast.BinOp():
            return _check_size(_OPERATIONS[type(node.op)](_value(node.left, names), _value(node.right, names)))
        case ast.Call(func=ast.Name(id=name)):
            return _check_size(FORMULA_FUNCTIONS[name](*(_value(argument, names) for argument in node.args)))
    raise TypeError(ast.unparse(node))


def _check_size(value: Any) -> Any:
    """Return `value` if it is a number of reasonable size; raise ValueError otherwise."""
    if not isinstance(value, (int, float)) or not abs(value) < _MAX_VALUE:
        raise ValueError(f"an intermediate result isn't a number below {_MAX_VALUE:g}")
    return value
