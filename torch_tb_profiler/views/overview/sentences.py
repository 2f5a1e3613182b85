"""The words of each rule, and of each of its cases."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.overview.device_rules import USUAL
from torch_tb_profiler.analyses.overview.finding import LEAST_GAIN
from torch_tb_profiler.analyses.overview.memory_rules import MEMORY_SHARE

_WORTH = f"so long that at least {LEAST_GAIN:.0%} of the step is to gain"


class Sentences(msgspec.Struct, frozen=True):
    """`text` is a template; `exception` follows "Does not apply if".

    more  why the replay gains more than `text` measures, where it does
    late  whether a late rank looks the same in the file of one rank: then that is an exception, too
    """

    title: str
    text: str
    rule: str
    exception: str
    code: str = ""
    more: str = ""
    late: bool = False


_COMPILE = 'model = torch.compile(model, mode="reduce-overhead")  # captures CUDA graphs'

SENTENCES = {
    ("data_loading", "process"): Sentences(
        "Load data in worker processes",
        "For {time} of {whole}, nothing runs but the loader, which loads the next batch in the training process.",
        f"waiting for the loader takes {_WORTH}, and no loader with worker processes is recorded",
        "no CPU core is free for workers, or the dataset cannot be opened in more than one process.",
        "DataLoader(..., num_workers=4, pin_memory=True, persistent_workers=True)",
    ),
    ("data_loading", "workers"): Sentences(
        "Make the workers of the loader faster",
        "Worker processes load the data, and still {time} of {whole} waits for a batch.",
        f"waiting for the loader takes {_WORTH}, although it has worker processes",
        "all CPU cores are busy already: then only cheaper decoding and augmentation help.",
        "DataLoader(..., num_workers=8, prefetch_factor=4)  # more than now",
    ),
    ("data_loading", "trainer"): Sentences(
        "Load the next batch while this one trains",
        "For {time} of {whole}, the trainer waits for data: loading takes {times} the batch itself.",
        f"the trainer's wait for its data loader takes {_WORTH}; how the loader works is not recorded",
        "no CPU core is free for more workers: then only cheaper decoding and augmentation help.",
        "DataLoader(..., num_workers=8, pin_memory=True, persistent_workers=True)  # more than now",
    ),
    ("start_up", ""): Sentences(
        "Record later steps",
        "For {time} of {whole}, the device waits for slow runtime calls, the longest of them {subject}{place}. "
        "Calls "
        "like these usually start something up (a context, modules, the first blocks of the allocator), so that "
        "what is recorded here is not what later steps cost.",
        f"calls of a millisecond or more, not in most steps, during which no device works, take {_WORTH}",
        "later steps make such calls, too.",
        "torch.profiler.schedule(wait=1, warmup=5, active=3)",
    ),
    ("allocator", ""): Sentences(
        "Keep memory in the allocator",
        "For {time} of {whole}, the device waits for {count} calls that ask the driver for memory or give it "
        "back, "
        "the longest of them {subject}{place}.",
        f"most of at least three steps ask the driver for memory or give it back, which takes {_WORTH}",
        "torch.cuda.empty_cache() is called in each step: then removing that call is what helps.",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # in the environment",
    ),
    ("synchronization", ""): Sentences(
        "Do not wait for the device in each step",
        "{count} calls wait until the device has finished, and it then waits {time} of {whole} for the next "
        "launch. "
        "Most of that follows {subject}{place}.",
        f"what the device waits after calls that waited for it, no longer than they did, is {_WORTH}",
        "the host needs the value at once, to decide what runs next.",
        "losses.append(loss.detach())  # and .item() once, after the loop",
        "Without these waits the host prepares what follows while the device still works, so more is to gain than "
        "these gaps.",
    ),
    ("host_code", "code"): Sentences(
        "Take host code out of the way of the device",
        "For {time} of {whole}, the device waits while the host is in {subject}.",
        f"waits of more than a millisecond, half of which one frame or annotation covers, take {_WORTH}",
        "what it computes depends on what the device computed just before.",
    ),
    ("host_code", "alone"): Sentences(
        "Take {subject} out of the step",
        "For {time} of {whole}, the host is in {subject} and runs no operator.",
        "under the calls of one function, most of whose time runs no operator, passes half of the time, or more, "
        f"in which none runs for more than a millisecond, and that takes {_WORTH}",
        "the step needs what it computes, or waits for, at once: then only making it faster helps.",
    ),
    ("host_code", "operator"): Sentences(
        "Find out what the host does in {subject}",
        "For {time} of {whole}, the device waits while the host is in {subject}. An operator that takes a "
        "millisecond "
        "computes on the host, waits for a lock or another thread, or runs for the first time.",
        f"waits of more than a millisecond, half of which one operator covers, take {_WORTH}",
        "it runs for the first time here, which later steps do not.",
    ),
    ("host_code", "call"): Sentences(
        "Find out what {subject} waits for",
        "For {time} of {whole}, the host is in {subject} while no work of the device is recorded.",
        f"waits of more than a millisecond, half of which one runtime call covers, take {_WORTH}",
        "it waits for something that this file does not have, such as work from before the recording.",
    ),
    ("launch_bound", ""): Sentences(
        "Launch less, or all at once",
        "For {time} of {whole}, the device waits because the host has not launched what comes next, in many short "
        "gaps; the median kernel, copy or memset with a recorded launch takes {duration}.",
        f"waits of up to a millisecond that end with a late launch take {_WORTH}, and no graphs are replayed",
        "shapes or control flow change from step to step. A larger batch helps as well, if it fits.",
        _COMPILE,
    ),
    ("pageable_copies", ""): Sentences(
        "Copy from pinned memory",
        "For {time} of {whole}, {count} copies from pageable memory to the device run while nothing computes. "
        "Those "
        "from pinned memory can overlap with kernels, and the host does not wait for them.",
        f"copies from pageable memory to the device, while no kernel runs, take {_WORTH}",
        "the data is used by the very next kernel: then it must be copied a batch ahead.",
        "DataLoader(..., pin_memory=True); batch.to(device, non_blocking=True)",
    ),
    ("communication", "ddp"): Sentences(
        "Exchange gradients less often, or smaller",
        "For {time} of {whole}, gradients are reduced{alone}.",
        f"all-reduce of DistributedDataParallel, in training, that no kernel hides and no wait explains takes "
        f"{_WORTH}",
        "the effective batch may not grow and gradients may not be rounded.",
        "with model.no_sync(): ...  # all but every n-th batch\nmodel.register_comm_hook(None, "
        "bf16_compress_hook)",
        late=True,
    ),
    ("communication", "fsdp"): Sentences(
        "Prefetch parameters",
        "For {time} of {whole}, parameters are gathered or gradients scattered{alone}.",
        f"all-gather and reduce-scatter of FSDP, in training, that no kernel hides and no wait explains take "
        f"{_WORTH}",
        "memory has no room for one more layer.",
        "FSDP(..., forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE)",
        late=True,
    ),
    ("late_rank", ""): Sentences(
        "Find the rank that is late",
        "For {time} of {whole}, collectives (the longest: {subject}) take longer than their size and others of "
        "their kind explain. Most likely they wait for another rank: "
        "files of the others in the same run tell which.",
        f"collectives take more than {USUAL} times the median of their kind, or move less than 4 GB/s; this is "
        f"more "
        f"than half of the communication that no kernel hides, and {_WORTH}",
        "the link between the ranks is that slow, or was set up in these steps.",
    ),
    ("data_parallel", ""): Sentences(
        "Use DistributedDataParallel",
        "One process drives {count} devices with DataParallel; the busiest of them computes for all but {time} of "
        "{whole}. With a process for each device, none waits for the model to be copied or for the GIL.",
        f"DataParallel on several devices, the busiest of which does not compute for {_WORTH}",
        "the devices wait for data, which more processes do not load faster.",
        "model = DistributedDataParallel(model, device_ids=[rank])  # torchrun --nproc-per-node=N",
    ),
    ("nccl_backend", ""): Sentences(
        "Use the NCCL backend",
        "For {time} of {whole}, gradients pass through host memory by {subject}. These GPUs can exchange them "
        "directly.",
        f"gradients of GPUs that NCCL supports are exchanged through gloo or MPI, which takes {_WORTH}",
        "the model is on the CPU.",
        'init_process_group("nccl")',
    ),
    ("mixed_precision", "fp16"): Sentences(
        "Let matrix products use Tensor Cores",
        "For {time} of {whole}, the host waits for matrix products in float32, which the Tensor Cores of this GPU "
        "could do in float16.",
        f"float32 operators that could use Tensor Cores and do not, take {_WORTH}",
        "the model does not converge in float16, even with a gradient scaler.",
        'with torch.autocast("cuda", dtype=torch.float16): ...',
    ),
    ("mixed_precision", "tf32"): Sentences(
        "Let matrix products use Tensor Cores",
        "For {time} of {whole}, the host waits for matrix products in float32, which the Tensor Cores of this GPU "
        "could do in TF32 or bfloat16.",
        f"float32 operators that could use Tensor Cores and do not, take {_WORTH}",
        "results need more than the 10 bits of precision of TF32.",
        'torch.set_float32_matmul_precision("high")',
    ),
    ("layout_conversion", ""): Sentences(
        "Keep images in the layout of the convolutions",
        "For {time} of {whole}, the host waits for {count} kernels that only convert between the layouts NCHW and "
        "NHWC around convolutions.",
        f"kernels that convert between NCHW and NHWC take {_WORTH}",
        "the model is in channels_last already: then an operator between the convolutions has no kernel for it.",
        "model = model.to(memory_format=torch.channels_last)  # and its inputs",
    ),
    ("slow_products", "alignment"): Sentences(
        "Make the sizes of matrix products multiples of 8",
        "{count} products run in kernels for operands that are not aligned; the longest is {subject}{place}. "
        "Beyond "
        "what the device needs for the same work at its peaks, they take {time} of {whole}.",
        f"products on Tensor Cores in kernels that load less than 16 bytes at once, of inputs with a size that is "
        "no "
        f"multiple of these, take beyond their roof {_WORTH}",
        "the odd size is that of one tensor in each step only, or padding adds more work than aligned kernels "
        "save.",
        "torch.nn.functional.pad(x, (0, -x.shape[-1] % 8))  # sizes of 16-bit types: multiples of 8",
    ),
    ("slow_products", "older"): Sentences(
        "Update the library of matrix products",
        "All matrix products on Tensor Cores run in kernels made for an older GPU than this; the longest is "
        "{subject}{place}. Most likely PyTorch was built with a CUDA version that has none for this GPU. Beyond "
        "what "
        "the device needs for the same work at its peaks, they take {time} of {whole}.",
        f"no product on Tensor Cores runs in a kernel whose name is that of the device's own generation, and "
        "those "
        f"that do run take beyond their roof {_WORTH}",
        "PyTorch is of a CUDA version made for this GPU already: then its library chose these kernels.",
    ),
    ("unfused_attention", "operators"): Sentences(
        "Use fused attention",
        "Attention runs {count} times as a product, softmax and another product, which write the scores of all "
        "pairs "
        "of tokens to memory and read them again. Beyond what a fused kernel needs at the peaks of the device, "
        "they "
        "take {time} of {whole}.",
        f"batched products before and after a softmax of what the first one computed take beyond the same "
        "products "
        f"without traffic for the scores {_WORTH}",
        "the weights of attention are needed themselves, or are changed in a way that no fused kernel knows.",
        "torch.nn.functional.scaled_dot_product_attention(q, k, v)",
    ),
    ("unfused_attention", "fallback"): Sentences(
        "Give attention inputs that a fused kernel takes",
        "scaled_dot_product_attention runs {count} times as a product, softmax and another product: no fused "
        "kernel "
        "took its inputs. Beyond what one needs at the peaks of the device, they take {time} of {whole}.",
        f"scaled_dot_product_attention falls back to single operators, which take beyond the same products "
        "without "
        f"traffic for the scores {_WORTH}",
        "the size of a head, the mask or the type must be what they are.",
        "with torch.nn.attention.sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION): ...  # warns why it cannot",
    ),
    ("elementwise_chains", ""): Sentences(
        "Fuse chains of elementwise kernels",
        "{count} chains of elementwise kernels follow each other on tensors of one size. If each reads what the "
        "one "
        "before wrote, as their sizes let expect, one kernel could do a whole chain: all but the longest kernel "
        "of "
        "each take {time} of {whole}.",
        f"three or more elementwise kernels of different operators in a row on a stream, of as many elements "
        "each, "
        f"take without the longest of them {_WORTH}",
        "they work on different tensors that have the same size.",
        "model = torch.compile(model)",
    ),
    ("optimizer_loop", "launches"): Sentences(
        "Step all parameters at once",
        "{subject} calls an operator for each parameter, {count} times in a step; the device waits {time} of "
        "{whole} "
        "for what it launches.",
        f"an optimizer calls one operator at least 8 times in a step and no kernel for lists of parameters, and "
        "the "
        f"device waits in it {_WORTH}",
        "it has no foreach or fused implementation, or parameters are sparse.",
        "torch.optim.AdamW(model.parameters(), fused=True)  # or foreach=True",
    ),
    ("optimizer_loop", "kernels"): Sentences(
        "Step all parameters at once",
        "{subject} calls an operator for each parameter, {count} times in a step. Beyond what the device needs "
        "for "
        "the same work at its peaks, these kernels take {time} of {whole}.",
        f"an optimizer calls one operator at least 8 times in a step and no kernel for lists of parameters, and "
        "what "
        f"it launches takes beyond its roof {_WORTH}",
        "it has no foreach or fused implementation, or parameters are sparse.",
        "torch.optim.AdamW(model.parameters(), fused=True)  # or foreach=True",
    ),
    ("memory_limit", "training"): Sentences(
        "Memory is nearly full",
        "Allocations on {subject} reach {share} of its memory; a larger batch may not fit.",
        f"allocated memory peaks above {MEMORY_SHARE:.0%} of the GPU's memory, in training",
        "the batch stays as it is.",
        "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
    ),
    ("memory_limit", "inference"): Sentences(
        "Memory is nearly full",
        "Allocations on {subject} reach {share} of its memory; a larger batch may not fit.",
        f"allocated memory peaks above {MEMORY_SHARE:.0%} of the GPU's memory, without a backward pass",
        "memory is reserved on purpose, as a cache of keys and values is.",
        "with torch.inference_mode(): ...",
    ),
}
