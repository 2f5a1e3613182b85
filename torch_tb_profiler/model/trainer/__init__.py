"""What a trainer records of its own loop and of the machine, beside what PyTorch records."""

from torch_tb_profiler.model.trace import COMPOSER

__all__ = ["COMPOSER"]
