"""Functions in C that may stand in for those in Python, where a session has loaded them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch_tb_profiler.model.trace import Bool, Int32, Int64


class CompiledFunctions(NamedTuple):
    """Each answers what the function in Python answers.

    nest       `nesting.nest`
    tree       of `calltree.tree_of`: (rows, start, end, thread of all events, number of threads) -> (rows, parent,
               depth, lane)
    changes    of `enclosing.changes`: (rows of one thread that nest, start, end, parent of all events) -> (times,
               what runs before each and after the last)
    enclosing  of `calltree.enclosing_operator`: (rows, parent, whether each event is an operator) -> the innermost
               operator around each event
    """

    nest: Callable[[Int64, Int64], tuple[Int64, Int64, Bool]]
    tree: Callable[[Int32, Int64, Int64, Int32, int], tuple[Int32, Int32, Int32, Int32]]
    changes: Callable[[Int32, Int64, Int64, Int32], tuple[Int64, Int32]]
    enclosing: Callable[[Int32, Int32, Bool], Int32]


_functions: CompiledFunctions | None = None


def use_compiled_functions(functions: CompiledFunctions | None) -> None:
    """From now on these are used; None: those in Python."""
    global _functions
    _functions = functions


def active_functions() -> CompiledFunctions | None:
    """What `use_compiled_functions` was told last."""
    return _functions
