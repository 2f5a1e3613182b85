"""Student's t distribution for any degrees of freedom, not only whole ones."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from torch_tb_profiler.model.trace import Float64


def student_two_sided(t: Float64, freedom: Float64) -> Float64:
    """Chance of a value at least as far from 0 as t, float64[k], for these degrees of freedom (not only whole)."""
    return _beta_fraction(freedom / 2, freedom / (freedom + t**2))


def _beta_fraction(a: Float64, x: Float64) -> Float64:
    """Regularized incomplete beta function I_x(a, 1/2) by Lentz's continued fraction (DLMF 8.17.22)."""
    b = 0.5
    flip = x > (a + 1) / (a + b + 2)
    one, two, at = np.where(flip, b, a), np.where(flip, a, b), np.where(flip, 1 - x, x)
    with np.errstate(divide="ignore"):
        front = np.exp(one * np.log(at) + two * np.log1p(-at) - np.log(one) - _log_beta(a))
    tiny = 1e-300
    c, d = np.ones(len(at)), 1 - (one + two) * at / (one + 1)
    d = 1 / np.where(np.abs(d) < tiny, tiny, d)
    fraction = d.copy()
    for m in range(1, 200):
        for factor in (
            m * (two - m) * at / ((one + 2 * m - 1) * (one + 2 * m)),
            -(one + m) * (one + two + m) * at / ((one + 2 * m) * (one + 2 * m + 1)),
        ):
            d = 1 + factor * d
            d = 1 / np.where(np.abs(d) < tiny, tiny, d)
            c = 1 + factor / c
            c = np.where(np.abs(c) < tiny, tiny, c)
            fraction *= c * d
        if np.abs(c * d - 1).max(initial=0) < 1e-13:
            break
    integral = front * fraction
    chance: Float64 = np.clip(np.where(flip, 1 - integral, integral), 0, 1)
    return chance


def _log_beta(a: Float64) -> Float64:
    """log B(a, 1/2)."""
    logarithm: Float64 = _log_gamma(a) + 0.5 * np.log(np.pi) - _log_gamma(a + 0.5)
    return logarithm


def _log_gamma(x: Float64) -> Float64:
    """Stirling's series after shifting x up (DLMF 5.11.1)."""
    shift = np.zeros(len(x))
    y = x.copy()
    for _ in range(8):
        shift -= np.log(y)
        y = y + 1
    series = 1 / (12 * y) - 1 / (360 * y**3) + 1 / (1260 * y**5)
    logarithm: Float64 = shift + (y - 0.5) * np.log(y) - y + 0.5 * np.log(2 * np.pi) + series
    return logarithm


def student_quantiles(freedom: Float64, confidence: float) -> Float64:
    """The t that is exceeded in either direction with chance 1 - confidence, from a table over 1 / freedom."""
    inverse, quantiles = _quantile_table(confidence)
    t: Float64 = np.interp(1 / np.maximum(freedom, 1.0), inverse, quantiles)
    return t


@lru_cache(maxsize=1)
def _quantile_table(confidence: float) -> tuple[Float64, Float64]:
    inverse = np.linspace(1e-4, 1, 2000)
    low, high = np.zeros(len(inverse)), np.full(len(inverse), 20.0)
    for _ in range(50):
        middle = (low + high) / 2
        over = student_two_sided(middle, 1 / inverse) > 1 - confidence
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return inverse, (low + high) / 2
