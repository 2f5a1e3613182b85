"""Each sentence of Origins on where kernels come from: where it holds, and where it doesn't."""

from __future__ import annotations

from tests.support.claims import Claim, ReadSentences, launched, read_sentences, repeat


def steps(*lines: str) -> ReadSentences:
    """Read the sentences about four steps of 10 ms."""
    return lambda: read_sentences("origins", repeat(*lines))


FRAME = "host python_function train.py(9):~main 0 100"
MODULE = "host python_function nn.Module:~Linear_0 0 100"
MM = "host cpu_op aten::mm 5 50\n" + launched("gemm", 200, 100, 10)
RELU = "host cpu_op aten::relu 105 50\n" + launched("relu", 400, 50, 110, 2)
ALONE = "gpu0 kernel copy 500 300"
"""A kernel without a launch."""

CLAIMS = [
    Claim(
        "{share} of {kernels} is traced to a source line.",
        r"66\.7% of kernel time is traced to a source line\.",
        steps(FRAME, MM, RELU),
        "the other operator is in the frame, too",
        steps(FRAME.replace(" 100", " 200"), MM, RELU),
    ),
    Claim(
        "{share} of {kernels} is traced to an operator, none to a source line.",
        r"25% of kernel time is traced to an operator, none to a source line\.",
        steps(MM, ALONE),
        "a frame is around the operator",
        steps(FRAME, MM, ALONE),
    ),
    Claim(
        "{share} of {kernels} is traced to a module, none to an operator or a source line.",
        r"25% of kernel time is traced to a module, none to an operator or a source line\.",
        steps(MODULE, launched("gemm", 200, 100, 10), ALONE),
        "it is launched in an operator of the module",
        steps(MODULE, MM, ALONE),
    ),
    Claim(
        "The origin of {kernels} is unknown.",
        r"The origin of kernel time is unknown\.",
        steps(launched("gemm", 200, 100, 10), ALONE),
        "an operator is around the launch",
        steps(MM, ALONE),
    ),
    Claim(
        "Traced by {sources}.",
        r"Traced by launch \(400 µs\)\.",
        steps(MM, ALONE),
        "that kernel takes half as long again",
        steps(MM.replace("gemm 200 100", "gemm 200 150"), ALONE),
    ),
    Claim(
        "Main gap ({kernels}, {time}): {reason}.",
        r"Main gap \(4 kernels, 1\.20 ms\): the launch was not recorded\.",
        steps(launched("gemm", 200, 100, 10), ALONE),
        "kernels that no operator launches take longer",
        steps(launched("gemm", 900, 400, 10), ALONE),
    ),
]

NO_CLAIMS: dict[str, str] = {}
"""Templates that say nothing of who, why, or how much, with the reason."""
