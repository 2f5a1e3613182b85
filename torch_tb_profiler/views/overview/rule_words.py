"""The words of each rule of advice: what to do, what was measured, when it is shown, and when it doesn't apply."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.overview.device_rules import LATE_RATIO
from torch_tb_profiler.analyses.overview.memory_rules import MEMORY_LIMIT_SHARE, MIN_OUTSIDE_SHARE
from torch_tb_profiler.views.overview.host_rule_words import COST, HOST_RULE_WORDS, RuleWords

_FRAGMENTATION = RuleWords(
    "Keep the allocator from fragmenting",
    "Memory reserved on {subject} rises by {message} per step while tensors use {used}: free blocks don't "
    "fit what is allocated.",
    "after the first step, reserved memory rises in three of four, by at least 1% of its peak altogether, and the "
    "peaks of the steps by less than half of that",
    "sizes repeat in later steps: then the allocator has seen them all.",
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # in the environment",
)

RULE_WORDS = HOST_RULE_WORDS | {
    ("pageable_copies", ""): RuleWords(
        "Copy from pinned memory",
        "For {time} of {base}, copies from pageable memory to the {device} ({count} in the trace) run without "
        "overlapping compute. Copies from pinned memory can overlap with kernels, and the host doesn't wait for "
        "them.",
        f"copies from pageable memory to the device, while no kernel runs, cost {COST}",
        "the very next kernel uses the data: then copy it a batch ahead.",
        "DataLoader(..., pin_memory=True); batch.to(device, non_blocking=True)",
        more="Without waits in these copies, the host can prepare the next launches while the {device} is still "
        "working, so the saving is larger than that.",
    ),
    ("pageable_copies", "offload"): RuleWords(
        "Pin the parameters of the offloaded optimizer",
        "For {time} of {base}, parameters that an optimizer on the CPU has updated come back from pageable memory "
        "({copies} in the trace) while nothing computes. "
        "From pinned memory they can overlap with the update of the parameters that follow, and the host doesn't "
        "wait for them.",
        "copies from pageable memory to the device in the step of an optimizer, or after it with the size of a "
        f"copy to the host, while no kernel runs, cost {COST}",
        "the device's memory has room for the optimizer's state: then don't offload it, which saves its time on "
        "the CPU as well.",
        '"offload_optimizer": {"device": "cpu", "pin_memory": true}  # DeepSpeed',
        more="Without waits in these copies, the host prepares the next launches while the {device} still works, "
        "so the saving is larger than that.",
    ),
    ("pinned_copies", ""): RuleWords(
        "Copy the next batch on a separate stream",
        "For {time} of {base}, copies from pinned memory ({count} in the trace) run on the stream of the kernels, "
        "which wait for them. On another stream they overlap with the kernels of the batch before.",
        f"copies from pinned memory to the device, on a stream that computes while no kernel runs, cost {COST}",
        "the data isn't known a batch ahead, or the device's memory has no room for a second batch.",
        "with torch.cuda.stream(copies): batch = batch.to(device, non_blocking=True)\n"
        "torch.cuda.current_stream().wait_stream(copies)  # a step later",
    ),
    ("exposed_copies", ""): RuleWords(
        "Start copies earlier, or move less data",
        "For {time} of {base}, copies between pinned memory and the {device} ({count} in the trace) run on "
        "streams of their own while nothing computes: kernels beside them are shorter, or they start too late.",
        "copies between pinned memory and the device, on streams that don't compute and while no kernel runs, "
        f"cost {COST}",
        "all that could run meanwhile needs what is copied.",
    ),
    ("pinned_copies", "offload"): RuleWords(
        "Overlap the copies of the offloaded optimizer",
        "For {time} of {base}, parameters that an optimizer on the CPU has updated come back from pinned memory "
        "({copies} in the trace) on the stream of the kernels, which wait for them. On another stream they "
        "overlap with the update of the parameters that follow; offloading fewer parameters makes them fewer.",
        "copies from pinned memory to the device in the step of an optimizer, or after it with the size of a copy "
        f"to the host, on a stream that computes while no kernel runs, cost {COST}",
        "the device's memory has room for the optimizer's state: then don't offload it, which saves its time on "
        "the CPU as well.",
        '"offload_optimizer": {"device": "cpu", "ratio": 0.5}  # DeepSpeed, ZeRO stage 3: half of it',
    ),
    ("optimizer_on_cpu", "fused"): RuleWords(
        "Use the fused optimizer",
        "{subject} calls its operators once per parameter, one of them {count} times per step. A fused step "
        "makes a single pass. How long that takes is unknown: it saves up to {limit} of "
        "{base}, all of the optimizer's step.",
        f"without a device, an optimizer calls one operator at least 8 times per step, which costs {COST}",
        "PyTorch is older than 2.4, parameters are sparse, or of a type that isn't floating point.",
        "torch.optim.AdamW(model.parameters(), fused=True)",
    ),
    ("optimizer_on_cpu", "other"): RuleWords(
        "Step with fewer operators",
        "{subject} calls its operators once per parameter, one of them {count} times per step. A compiled "
        "step makes a single pass. How long that takes is unknown: it saves up to {limit} of "
        "{base}, all of the optimizer's step.",
        f"without a device, an optimizer calls one operator at least 8 times per step, which costs {COST}, and "
        "it has no fused version on the CPU",
        "compiling it isn't possible, for example because it synchronizes with other processes.",
        "step = torch.compile(optimizer.step)",
    ),
    ("small_collectives", "ddp"): RuleWords(
        "Use larger gradient buckets",
        "{subject} runs {count} times per step with a median of {message}, too little for its links: latency "
        "makes up most of it. In one bucket at 4 GB/s, these gradients would save {time} of {base}.",
        "a training step all-reduces at least 8 messages of up to 1 MiB, and what they take beyond the first "
        f"one and 4 GB/s costs {COST}",
        "each bucket overlaps with the backward pass, which one large bucket at its end doesn't.",
        "DistributedDataParallel(model, bucket_cap_mb=25, gradient_as_bucket_view=True)",
        late=True,
    ),
    ("small_collectives", "loop"): RuleWords(
        "Exchange gradients in buckets",
        "{subject} runs {count} times per step with a median of {message}, one after the other: latency makes up "
        "most of it. In one bucket at 4 GB/s, these messages would save {time} of {base}.",
        "a training step all-reduces at least 8 messages of up to 1 MiB in a row, and what they take beyond the "
        f"first one and 4 GB/s costs {COST}",
        "each result is needed before the next message is known.",
        "flat = torch._utils._flatten_dense_tensors(grads)\n"
        "dist.all_reduce(flat)  # once, then copy back; or wrap the model in DistributedDataParallel",
        late=True,
    ),
    ("contention", ""): RuleWords(
        "Give collectives fewer multiprocessors",
        "{subject} takes {share} as long while collectives run as it does alone, on equal sizes. Kernels lose "
        "{time} of {base} to this.",
        "kernels of equal name and size have a median at least 15% longer beside collectives than alone (three "
        f"calls of each), and the difference costs {COST}",
        "the collectives then take longer than the kernels gain: measure both.",
        "NCCL_MAX_CTAS=8  # in the environment; or NCCL_MAX_NCHANNELS before NCCL 2.17",
    ),
    ("communication", "ddp_16_bit"): RuleWords(
        "Exchange gradients less often",
        "For {time} of {base}, 16-bit gradients are all-reduced{overlap}.",
        "all-reduce of DistributedDataParallel in training, of gradients in 16-bit types, neither overlapped "
        f"with kernels nor explained by waiting, costs {COST}",
        "the effective batch may not grow.",
        "with model.no_sync(): ...  # all but every n-th batch",
        late=True,
    ),
    ("communication", "ddp"): RuleWords(
        "Exchange gradients less often, or compress them",
        "For {time} of {base}, gradients are all-reduced{overlap}.",
        f"all-reduce of DistributedDataParallel in training, neither overlapped with kernels nor explained by "
        f"waiting, costs {COST}",
        "the effective batch may not grow and gradients may not be rounded.",
        "with model.no_sync(): ...  # all but every n-th batch\nmodel.register_comm_hook(None, "
        "bf16_compress_hook)",
        late=True,
    ),
    ("communication", "fsdp"): RuleWords(
        "Prefetch parameters",
        "For {time} of {base}, parameters are gathered or gradients scattered{overlap}.",
        f"all-gather and reduce-scatter of FSDP in training, neither overlapped with kernels nor explained by "
        f"waiting, cost {COST}",
        "memory has no room for one more layer.",
        "FSDP(..., forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE)",
        late=True,
    ),
    ("late_rank", ""): RuleWords(
        "Find out why collectives are slow",
        "For {time} of {base}, collectives (the longest: {subject}) run longer than their size and other calls of "
        "the same kind would suggest. Either they wait for another rank, or the network is slow; add the other "
        "ranks' files to the run to see which.",
        f"collectives take more than {LATE_RATIO} times the median of their kind, or move less than 4 GB/s; this "
        f"is more than half of the exposed communication and costs {COST}",
        "the link between the ranks is that slow, or was set up in these steps.",
    ),
    ("late_rank", "messages"): RuleWords(
        "Find out what send and receive wait for",
        "For {time} of {base}, send and receive kernels run longer than their size and others like them would "
        "suggest. Either they wait for another rank, as a stage of a pipeline does for its neighbors, or the "
        "network is slow; add the other ranks' files to the run to see which.",
        f"communication takes more than {LATE_RATIO} times the median of its kind, or moves less than 4 GB/s, "
        f"mostly in send and receive kernels; this is over half of the exposed communication and costs {COST}",
        "the link between the ranks is that slow, or was set up in these steps.",
    ),
    ("late_rank", "pipeline"): RuleWords(
        "Find out what collectives wait for",
        "For {time} of {base}, collectives (the longest: {subject}) run longer than their size and other calls of "
        "the same kind would suggest. As a stage of a pipeline, this rank may wait for stages that finish their "
        "microbatches later. Or a rank is late, or the network is slow; the other ranks' files show which.",
        f"collectives take more than {LATE_RATIO} times the median of their kind, or move less than 4 GB/s, "
        f"beside messages both ways; which is more than half of the exposed communication and costs {COST}",
        "the link between the ranks is that slow, or was set up in these steps.",
    ),
    ("pipeline_waits", ""): RuleWords(
        "Use more microbatches, or an interleaved schedule",
        "For {time} of {base}, this stage of a pipeline computes nothing while its messages take longer than "
        "their sizes explain: it waits for a neighbor stage, or the link to it is slow. The pipeline's bubble is "
        "part of that, and more microbatches shrink it.",
        "a training step exchanges messages of known size with a rank in both directions; what they take beyond "
        f"0.1 ms and 4 GB/s while nothing computes costs {COST}",
        "the messages belong to no pipeline, or smaller microbatches compute less efficiently.",
        "ScheduleInterleaved1F1B(stages, n_microbatches=4 * pipeline_size)  # torch.distributed.pipelining",
        late=True,
    ),
    ("data_parallel", ""): RuleWords(
        "Use DistributedDataParallel",
        "One process drives {count} devices with DataParallel, and even the busiest doesn't compute for {time} of "
        "{base}. With a process per device, none waits for the model to be copied or for the GIL.",
        f"DataParallel uses several devices, and time in which the busiest doesn't compute costs {COST}",
        "the devices wait for data, which more processes don't load faster.",
        "model = DistributedDataParallel(model, device_ids=[rank])  # torchrun --nproc-per-node=N",
    ),
    ("nccl_backend", ""): RuleWords(
        "Use the NCCL backend",
        "For {time} of {base}, {subject} passes gradients through host memory. These GPUs can exchange them "
        "directly.",
        f"GPUs that NCCL supports exchange gradients through gloo or MPI, which costs {COST}",
        "the model is on the CPU.",
        'init_process_group("nccl")',
    ),
    ("mixed_precision", "fp16"): RuleWords(
        "Run matrix products on Tensor Cores",
        "Matrix products in float32 could run in float16 on this GPU's Tensor Cores. At peak speed, that would "
        "save up to {gain} of {base}.{unknown}{sizes}",
        f"float32 operators that could use Tensor Cores but don't cost {COST} beyond the roofline with them",
        "the model doesn't converge in float16, even with a gradient scaler.",
        'with torch.autocast("cuda", dtype=torch.float16): ...',
    ),
    ("mixed_precision", "tf32"): RuleWords(
        "Run matrix products on Tensor Cores",
        "Matrix products in float32 could run in TF32 on this GPU's Tensor Cores. At peak speed, that would "
        "save up to {gain} of {base}.{unknown}{sizes}",
        f"float32 operators that could use Tensor Cores but don't cost {COST} beyond the roofline with them",
        "results need more than the 10 bits of precision of TF32.",
        'torch.set_float32_matmul_precision("high")',
    ),
    ("layout_conversion", ""): RuleWords(
        "Keep images in channels_last",
        "{kernels} in the trace only {convert} between the layouts NCHW and NHWC around convolutions. Without "
        "them, convolutions and batch norms may be faster, too: at peak speed, that would save up to {gain} of "
        "{base}.",
        f"kernels that convert between NCHW and NHWC cost {COST}",
        "the model is in channels_last already: then an operator between the convolutions has no kernel for it.",
        "model = model.to(memory_format=torch.channels_last)  # and its inputs",
    ),
    ("slow_products", "alignment"): RuleWords(
        "Make matrix sizes multiples of 8",
        "{products} in the trace {run} in kernels for unaligned operands, the longest being {subject}{place}. "
        "At peak speed, aligned kernels would save up to {gain} of {base}.",
        "matrix products on Tensor Cores run in kernels that load less than 16 bytes at once, because a size of "
        f"their inputs isn't a multiple of that; their time beyond the roofline costs {COST}",
        "only one tensor per step has the odd size, or padding adds more work than aligned kernels save.",
        "torch.nn.functional.pad(x, (0, -x.shape[-1] % 8))  # sizes of 16-bit types: multiples of 8",
    ),
    ("slow_products", "older"): RuleWords(
        "Update PyTorch's CUDA version",
        "All matrix products on Tensor Cores run in kernels made for an older GPU, the longest being "
        "{subject}{place}. Most likely, PyTorch was built with a CUDA version that has none for this GPU. At peak "
        "speed, kernels made for it would save up to {gain} of {base}.",
        f"no product on Tensor Cores runs in a kernel named after the device's own generation; their time beyond "
        f"the roofline costs {COST}",
        "PyTorch's CUDA version is made for this GPU already: then its library chose these kernels.",
    ),
    ("unfused_attention", "operators"): RuleWords(
        "Use fused attention",
        "Attention runs {often} in the trace as a matmul, a softmax and another matmul, which write the "
        "scores of all pairs of tokens to memory and read them back. A fused kernel at peak speed would save "
        "up to {gain} of {base}.",
        f"batched products before and after a softmax of the first one's result cost {COST} beyond the same "
        f"products without memory traffic for the scores",
        "the attention weights are needed themselves, or change in a way that no fused kernel supports.",
        "torch.nn.functional.scaled_dot_product_attention(q, k, v)",
    ),
    ("unfused_attention", "fallback"): RuleWords(
        "Give attention inputs that a fused kernel supports",
        "scaled_dot_product_attention runs {often} in the trace as a matmul, a softmax and another matmul: "
        "no fused kernel supports its inputs, or none is enabled. A fused kernel at peak speed would save up to "
        "{gain} of {base}.",
        f"scaled_dot_product_attention falls back to single operators, which cost {COST}, forward and backward, "
        "beyond the same products in 16 bits, half of the pairs of tokens and no memory traffic for the scores",
        "the head size, the mask or the dtype must stay.",
        "with torch.nn.attention.sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION): ...  # warns why it can't",
    ),
    ("elementwise_chains", ""): RuleWords(
        "Fuse elementwise kernels",
        "{chains} of elementwise kernels in the trace {run} on tensors of the same size. If each kernel reads "
        "what the previous one wrote, as their sizes suggest, one kernel could do a whole chain. At peak speed, "
        "if it reads a single such tensor and writes one, that would save up to {gain} of {base}.",
        "three or more elementwise kernels of different operators in a row on a stream, each with as many "
        f"elements, cost {COST} beyond one kernel that reads a single tensor and writes one",
        "they work on different tensors of the same size.",
        "model = torch.compile(model)",
    ),
    ("optimizer_loop", "launches"): RuleWords(
        "Step all parameters at once",
        "{subject} calls an operator for each parameter, {count} times per step; the {device} is idle for {time} "
        "of {base} until these are launched.",
        "an optimizer calls one operator at least 8 times per step and no kernel for lists of parameters, and "
        f"idle time in it costs {COST}",
        "it has no foreach or fused implementation, or parameters are sparse.",
        "torch.optim.AdamW(model.parameters(), fused=True)  # or foreach=True",
        more="One kernel for all parameters also takes the place of many others, so the saving may be larger than "
        "that.",
    ),
    ("optimizer_loop", "kernels"): RuleWords(
        "Step all parameters at once",
        "{subject} calls an operator for each parameter, {count} times per step. One kernel for all of them "
        "would save up to {gain} of {base}.",
        f"an optimizer calls one operator at least 8 times per step and no kernel for lists of parameters; its "
        f"kernels' time beyond one pass over the parameters and the gaps between them cost {COST}",
        "it has no foreach or fused implementation, or parameters are sparse.",
        "torch.optim.AdamW(model.parameters(), fused=True)  # or foreach=True",
    ),
    ("memory_limit", "training"): RuleWords(
        "Free memory before you grow the batch",
        "Allocations on {subject} reach {share} of its memory; a larger batch may not fit.",
        f"allocated memory peaks above {MEMORY_LIMIT_SHARE:.0%} of the GPU's memory, in training",
        "the batch stays as it is.",
        "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
    ),
    ("memory_limit", "inference"): RuleWords(
        "Free memory before you grow the batch",
        "Allocations on {subject} reach {share} of its memory; a larger batch may not fit.",
        f"allocated memory peaks above {MEMORY_LIMIT_SHARE:.0%} of the GPU's memory, without a backward pass",
        "memory is reserved on purpose, for example as a KV cache.",
        "with torch.inference_mode(): ...",
    ),
    ("memory_peak", ""): RuleWords(
        "Lower the peak outside of the steps",
        "Allocations on {subject} reach {share} of its memory outside of the steps, which reach {message}. That "
        "peak decides what fits, not the batch.",
        f"allocated memory peaks outside of the steps, above {MIN_OUTSIDE_SHARE:.0%} of the GPU's memory and at "
        "least 10% above the peak in the steps",
        "what allocates it, such as an evaluation or a search for the fastest kernels, isn't part of other runs.",
        'torch.load(path, map_location="cpu", mmap=True)  # a checkpoint; build the model on the meta device',
    ),
    ("memory_growth", ""): RuleWords(
        "Stop live memory from growing",
        "Live memory on {subject} rises by {message} per step{operator}.",
        "after the first step, live memory at the ends of steps rises in three of four, by at least 1% of the "
        "peak altogether",
        "a cache is filling up to its limit.",
        "losses.append(loss.item())  # keeps no graph; write results to a preallocated tensor, not torch.cat",
    ),
    ("reserved_growth", "segments"): _FRAGMENTATION,
    ("reserved_growth", "sizes"): msgspec.structs.replace(
        _FRAGMENTATION,
        rule=f"{_FRAGMENTATION.rule}, on a device that isn't NVIDIA's",
        code="torch.nn.functional.pad(x, (0, -x.shape[-1] % 64))  # few different sizes: pad or bucket the inputs",
    ),
}
"""(id of a rule, case) -> its words."""
