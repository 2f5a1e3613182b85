"""What the name of a kernel consists of, in every way that compilers write it."""

from __future__ import annotations

import pytest

from torch_tb_profiler.model.kernels.identifiers import MAX_NAME_LENGTH, KernelIdentifiers, parse_identifiers


@pytest.mark.parametrize(
    ("name", "path", "arguments"),
    [
        ("ampere_sgemm_64x64_nn", "ampere_sgemm_64x64_nn", ""),
        ("void f<int, 4>(int)", "f", "int, 4"),
        ("void a::(anonymous namespace)::f<b<int>, 4>(int)", "a::f", "b<int>, 4"),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(P)", "internal::gemvx::kernel", "int"),
        ("bool ns::operator<(A, B)", "ns::operator<", ""),
        ("void f<A::operator->>(int)", "f", "A::operator->"),
        ("_ZN2ck6device12_GLOBAL__N_16kernelINS_1AEEEvT_", "ck::device::kernel", "INS_1AEEEvT_"),
        ("_Z6kernelPf", "kernel", "Pf"),
        ("_topk_forward", "_topk_forward", ""),
        ("", "", ""),
        ("<lambda>", "<lambda>", ""),
    ],
)
def test_names_are_split_into_path_and_arguments(name: str, path: str, arguments: str) -> None:
    assert parse_identifiers(name) == KernelIdentifiers(path, arguments)


@pytest.mark.parametrize(
    "name", ["_Z", "_ZN", "_ZN99999short", "_ZN9999", "void ", "f<<<<", ">>>>(", "<" * 10_000]
)
def test_broken_names_are_parsed(name: str) -> None:
    assert isinstance(parse_identifiers(name).path, str)


def test_only_the_beginning_of_a_long_name_is_read() -> None:
    assert len(parse_identifiers("k" * 10 * MAX_NAME_LENGTH).path) == MAX_NAME_LENGTH
