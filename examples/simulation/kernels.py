# ruff: noqa: E501 - names of kernels are as long as they are
"""The kernels that PyTorch runs for a transformer in bfloat16 on an H100, with the work that each does."""

from __future__ import annotations

from simulation.hardware import Kernel

BYTES = 2
"""Of an element."""

_FUNCTORS = {
    "add": "at::native::CUDAFunctor_add<c10::BFloat16>",
    "mul": "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >",
    "gelu": "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const"
    "::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}",
    "gelu_backward": "at::native::GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}"
    "::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16, c10::BFloat16)#1}",
    "fill": "at::native::FillFunctor<c10::BFloat16>",
}


def matrix_product(rows: int, inner: int, columns: int, layout: str) -> Kernel:
    """Describe C = A B with A (rows, inner) and B (inner, columns); `layout` as cuBLAS spells it: TNT, NNT or NTT."""
    traffic = BYTES * (rows * inner + inner * columns + rows * columns)
    return Kernel(
        f"nvjet_sm90_tst_256x128_64x4_2x1_v_bz_coopA_{layout}",
        2.0 * rows * inner * columns,
        traffic,
        reached=0.71,
        block=384,
        blocks=132,
        registers=168,
        shared_memory=199_712,
        occupancy=19,
    )


def elementwise(functor: str, elements: int, inputs: int) -> Kernel:
    function, pointers = _FUNCTORS[functor], f"std::array<char*, {inputs + 1}ul>"
    name = (
        f"void at::native::vectorized_elementwise_kernel<4, {function}, {pointers} >(int, {function}, {pointers})"
    )
    return Kernel(name, elements, BYTES * elements * (inputs + 1), block=128, blocks=elements // 512)


def layer_norm(tokens: int, width: int) -> Kernel:
    name = (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, false>(int, float, "
        "c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)"
    )
    return Kernel(
        name, 5.0 * tokens * width, 2 * BYTES * tokens * width, 0.8, block=128, blocks=tokens, registers=40
    )


def layer_norm_backward(tokens: int, width: int) -> list[Kernel]:
    inputs = (
        "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float, false>("
        "c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16 const*, c10::BFloat16*, int)"
    )
    weights = (
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<c10::BFloat16, float, 64u, 1u, 32u, "
        "true, true, false>(long, long, c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, "
        "c10::BFloat16*, c10::BFloat16*)"
    )
    traffic = BYTES * tokens * width
    return [
        Kernel(
            inputs, 8.0 * tokens * width, 3 * traffic, 0.75, block=128, blocks=tokens, registers=56, occupancy=56
        ),
        Kernel(
            weights,
            4.0 * tokens * width,
            2 * traffic,
            0.6,
            block=64,
            blocks=width // 32,
            registers=64,
            occupancy=31,
        ),
    ]


_TRAITS = "Flash_{0}_kernel_traits<128, {1}, 8, {2}cutlass::bfloat16_t, Flash_kernel_traits<128, {1}, 8, cutlass::bfloat16_t> >"


def attention(batch: int, heads: int, length: int, size: int) -> Kernel:
    """Describe causal attention: half of the products are computed."""
    name = (
        f"void pytorch_flash::flash_fwd_kernel<{_TRAITS.format('fwd', '128, 64', 'false, false, ')}, false, true, false, "
        "false, true, true, false, false>(pytorch_flash::Flash_fwd_params)"
    )
    flops = 4.0 * batch * heads * length * length * size / 2
    blocks = batch * heads * length // 128
    return Kernel(name, flops, 4 * BYTES * batch * heads * length * size, 0.38, 128, blocks, 255, 65_536, 12)


def attention_backward(batch: int, heads: int, length: int, size: int) -> list[Kernel]:
    flops = 10.0 * batch * heads * length * length * size / 2
    traffic = BYTES * batch * heads * length * size
    traits = _TRAITS.format("bwd", "64, 128", "4, 2, 2, false, false, ")
    blocks = batch * heads * length // 128
    return [
        Kernel(
            f"void pytorch_flash::flash_bwd_dot_do_o_kernel<true, {traits}>(pytorch_flash::Flash_bwd_params)",
            0,
            2 * traffic,
            block=256,
            blocks=blocks,
        ),
        Kernel(
            f"void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<{traits}, false, true, false, false, true, "
            "true, false>(pytorch_flash::Flash_bwd_params)",
            flops,
            8 * traffic,
            0.32,
            256,
            blocks,
            255,
            147_456,
            12,
        ),
        Kernel(
            f"void pytorch_flash::flash_bwd_convert_dq_kernel<{traits}>(pytorch_flash::Flash_bwd_params, int)",
            0,
            3 * traffic,
            block=256,
            blocks=blocks,
        ),
    ]


def embedding(tokens: int, width: int) -> Kernel:
    name = (
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>("
        "at::cuda::detail::TensorInfo<c10::BFloat16, unsigned int>, at::cuda::detail::TensorInfo<c10::BFloat16 const, "
        "unsigned int>, at::cuda::detail::TensorInfo<long const, unsigned int>, int, int, unsigned int, unsigned int, long)"
    )
    return Kernel(name, 0, 2 * BYTES * tokens * width, 0.5, block=128, blocks=1056, registers=30)


def embedding_backward(tokens: int, width: int) -> Kernel:
    name = (
        "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<c10::BFloat16, float, long>(long const*, "
        "c10::BFloat16 const*, c10::BFloat16*, int, long, int)"
    )
    return Kernel(
        name, 0, 4 * BYTES * tokens * width, 0.3, block=1024, blocks=width // 32, registers=32, occupancy=75
    )


def softmax(tokens: int, words: int, backward: bool = False) -> Kernel:
    side = "Backward" if backward else "Forward"
    name = (
        f"void at::native::(anonymous namespace)::cunn_SoftMax{side}<8, c10::BFloat16, float, c10::BFloat16, "
        f"at::native::(anonymous namespace)::LogSoftMax{side}Epilogue>(c10::BFloat16*, c10::BFloat16 const*, int)"
    )
    return Kernel(
        name, 5.0 * tokens * words, (3 if backward else 2) * BYTES * tokens * words, 0.8, 1024, tokens, 32
    )


def nll_loss(tokens: int, backward: bool = False) -> Kernel:
    side = "backward" if backward else "forward"
    name = f"void at::native::(anonymous namespace)::nll_loss_{side}_reduce_cuda_kernel_2d<c10::BFloat16, float, long>(...)"
    return Kernel(name, tokens, 10.0 * tokens, 0.1, block=32, blocks=1, registers=24, occupancy=0)


def adamw(parameters: int) -> Kernel:
    """Read the gradient, both moments and the parameter, and write the last three."""
    name = (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)"
        "::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<c10::BFloat16, "
        "float, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool, float*, "
        "float*>(at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)"
        "::FusedAdamMathFunctor<c10::BFloat16, float, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, "
        "double, double, double, bool, float*, float*)"
    )
    return Kernel(
        name, 12.0 * parameters, 7 * BYTES * parameters, 0.8, block=512, blocks=320, registers=48, occupancy=50
    )
