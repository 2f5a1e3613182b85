"""Each sentence on which modules take the time: where it holds, and where it doesn't."""

from __future__ import annotations

from tests.support.claims import Claim, ReadSentences, launched, read_sentences
from tests.support.recordings import TRAINING
from tests.support.traces import draw


def ask(picture: str) -> ReadSentences:
    return lambda: read_sentences("modules", draw(picture))


def model(linear: int, copies: int = 1, device: bool = True) -> ReadSentences:
    """Read the sentences about Linear modules that take so many us each, beside a Norm that takes 100 us."""
    lines = ["host python_function nn.Module:~Norm_0 0 100\nhost cpu_op aten::norm 0 100"]
    for i in range(copies):
        start = 1_000 * (i + 1)
        lines.append(f"host python_function nn.Module:~Linear_{i} {start} {linear}")
        lines.append(f"host cpu_op aten::mm {start} {linear}")
        if device:
            lines.append(launched("gemm", start + 20, linear, start + 5, i))
    if device:
        lines.append(launched("norm", 20, 100, 5, 99))
    return ask("\n".join(lines))


def in_two_places(*names: str) -> ReadSentences:
    """Read the sentences about modules, one in an encoder and one in a decoder, that take 150 us each."""
    lines = ["host python_function nn.Module:~Norm_0 0 100", launched("norm", 20, 100, 5, 99)]
    for i, (outer, inner) in enumerate(zip(("Encoder_0", "Decoder_0"), names, strict=True)):
        start = 1_000 * (i + 1)
        lines.append(f"host python_function nn.Module:~{outer} {start} 300")
        lines.append(f"host python_function nn.Module:~{inner} {start + 5} 200")
        lines.append(launched("gemm", start + 40, 150, start + 10, i))
    return ask("\n".join(lines))


STRAY = "gpu0 kernel stray 700 2 stream=7"
PICTURE = "\n".join(" ".join(line.split()) for line in TRAINING.splitlines())

CLAIMS = [
    Claim(
        "{modules} is the top module: {share} of module {kind} time.",
        r"Linear is the top module: 75% of module GPU time\.",
        model(300),
        "the other module takes longer",
        model(30),
    ),
    Claim(
        "The {modules} make up {share} of module {kind} time.",
        r"The 2 Linear modules make up 75% of module host time\.",
        model(150, 2, device=False),
        "there is one of them",
        model(300, device=False),
    ),
    Claim(
        "The {modules} make up {share} of module {kind} time.",
        r"The 2 Linear modules make up 75% of module GPU time\.",
        in_two_places("Linear_0", "Linear_1"),
        "one module is called in both places",
        in_two_places("Linear_0", "Linear_0"),
    ),
    Claim(
        "{modules} is the top module: {share} of module {kind} time.",
        r"Linear is the top module: 75% of module GPU time\.",
        in_two_places("Linear_0", "Linear_0"),
        "each place has a module of its own",
        in_two_places("Linear_0", "Linear_1"),
    ),
    Claim(
        "No {device} work was launched inside a module.",
        "No GPU work was launched inside a module.",
        ask("host python_function nn.Module:~Norm_0 0 100\n" + launched("gemm", 300, 10, 200)),
        "the launch is inside it",
        ask("host python_function nn.Module:~Norm_0 0 100\n" + launched("gemm", 300, 10, 20)),
    ),
    Claim(
        "All {device} work was launched in modules.",
        "All GPU work was launched in modules.",
        model(300),
        "some has no launch",
        ask("host python_function nn.Module:~Norm_0 0 100\n" + launched("gemm", 300, 10, 20) + "\n" + STRAY),
    ),
    Claim(
        "Forward takes {forward}, backward {backward}.",
        r"Forward takes 57\.0 µs, backward 60\.0 µs\.",
        ask(PICTURE),
        "the kernel of backward takes twice as long",
        ask(PICTURE.replace("gemm_backward 500 60", "gemm_backward 500 120")),
    ),
    Claim(
        "{shares}.",
        r"2\.5% of GPU time was launched outside any module and 1\.6% of GPU time has no recorded launch\.",
        ask(PICTURE),
        "the last module lasts until that launch",
        ask(PICTURE.replace("Net_0 0 100", "Net_0 0 120")),
    ),
]

NO_CLAIMS = {"No time was recorded in modules.": "why nothing is said"}
"""Templates that say nothing of who, why, or how much, with the reason."""
