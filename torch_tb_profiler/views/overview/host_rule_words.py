"""The words of the rules of advice about the host: what it does while a device waits for it."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.overview.finding import MIN_GAIN_SHARE

COST = f"at least {MIN_GAIN_SHARE:.0%} of the step"


class RuleWords(msgspec.Struct, frozen=True):
    """The words of one case of a rule. `title` and `text` are templates.

    rule       when it is shown, after "Shown because"
    exception  when it doesn't apply, after "Doesn't apply if"
    code       what to write
    more       why the replay saves more than `text` measures, where it does
    late       whether a straggler looks the same in the file of one rank, which then is an exception, too
    """

    title: str
    text: str
    rule: str
    exception: str
    code: str = ""
    more: str = ""
    late: bool = False


_SYNCHRONIZATION = RuleWords(
    "Remove per-step synchronization",
    "{calls} in the trace {wait} for the {device} to finish; it is then idle for {time} of {base} until "
    "the next launch. {most} of that follows {subject}{place}.",
    f"idle time after calls that wait for the device, counted up to the length of each wait, costs {COST}",
    "the host needs the value right away to decide what runs next.",
    "losses.append(loss.detach())  # and .item() once, after the loop",
    "Without these waits, the host can prepare the next launches while the {device} is still working, so the "
    "saving is larger than these gaps.",
)

HOST_RULE_WORDS = {
    ("data_loading", "process"): RuleWords(
        "Load data in worker processes",
        "For {time} of {base}, the training process loads the next batch and nothing else runs.",
        f"waiting for the DataLoader costs {COST}, and no worker processes were recorded",
        "no CPU core is free for workers, or the dataset can't be opened in more than one process.",
        "DataLoader(..., num_workers=4, pin_memory=True, persistent_workers=True)",
    ),
    ("data_loading", "workers"): RuleWords(
        "Speed up the DataLoader workers",
        "For {time} of {base}, training waits for the next batch, although worker processes load the data.",
        f"waiting for the DataLoader costs {COST}, although it has worker processes",
        "all CPU cores are busy: then only cheaper decoding and augmentation help.",
        "DataLoader(..., num_workers=8, prefetch_factor=4)  # more than now",
    ),
    ("data_loading", "same_cpu"): RuleWords(
        "Find out why the DataLoader workers are late",
        "For {time} of {base}, training waits for the next batch from worker processes. They run on the same CPU "
        "as the training, so more of them may slow it down. What they do isn't recorded.",
        f"waiting for the DataLoader's worker processes costs {COST}, and no device is used: the CPU computes",
        "cores are idle while training waits: then more workers help.",
        "torch.set_num_threads(n)  # leaves cores to the workers; profile a batch with num_workers=0",
    ),
    ("data_loading", "trainer"): RuleWords(
        "Load the next batch while this one trains",
        "For {time} of {base}, the trainer waits for data: loading takes {times} as long as the batch itself.",
        f"the trainer's wait for its data loader costs {COST}; how the loader works isn't recorded",
        "no CPU core is free for more workers: then only cheaper decoding and augmentation help.",
        "DataLoader(..., num_workers=8, pin_memory=True, persistent_workers=True)  # more than now",
    ),
    ("data_loading", "stalls"): RuleWords(
        "Keep more batches ready",
        "In {count} steps, training waits {message} for the next batch (median), but hardly in the others: {time} "
        "per step, averaged over all steps but the first.",
        "at least two steps after the first are far longer than a typical one because they wait for the "
        f"DataLoader, which costs at least {MIN_GAIN_SHARE:.0%} of the mean step; typical steps wait for less",
        "these are the first steps of an epoch: then persistent_workers=True keeps the workers alive.",
        "DataLoader(..., num_workers=8, prefetch_factor=4, persistent_workers=True)  # more than now",
    ),
    ("start_up", ""): RuleWords(
        "Record later steps to skip warm-up",
        "For {time} of {base}, the {device} is idle during slow runtime calls, the longest being {subject}{place}"
        ". Such calls usually initialize something (a context, modules, the allocator's first blocks), so later "
        "steps don't cost what is recorded here.",
        f"calls of a millisecond or more that most steps don't make, while every device is idle, cost {COST}",
        "later steps make such calls, too.",
        "torch.profiler.schedule(wait=1, warmup=5, active=3)",
    ),
    ("allocator", ""): RuleWords(
        "Stop cudaMalloc/cudaFree during training",
        "For {time} of {base}, the {device} is idle during calls that allocate or free driver memory ({count} in "
        "the trace), the longest being {subject}{place}. Operators after such calls often run slower on the host, "
        "too, which this doesn't include.",
        f"most of at least three steps allocate or free driver memory, which costs {COST}",
        "each step calls torch.cuda.empty_cache(): then remove that call.",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # in the environment",
    ),
    ("synchronization", ""): _SYNCHRONIZATION,
    ("synchronization", "some_steps"): msgspec.structs.replace(_SYNCHRONIZATION, title="Remove synchronization"),
    ("blocking_copies", ""): RuleWords(
        "Use non-blocking copies",
        "{calls} in the trace {wait} for copies between host and {device}. Idle time until the next launch, "
        "and copies to the host that overlap no compute, cost {time} of {base}, most of all in {subject}{place}.",
        "idle time after calls that wait for copies, counted up to the length of each wait, and copies to the "
        f"host that it waits for while no kernel runs, cost {COST}",
        "the host needs the values right away to decide what runs next.",
        "batch = batch.to(device, non_blocking=True)  # from DataLoader(..., pin_memory=True)\n"
        "host.copy_(out, non_blocking=True); copied.record()  # host is pinned: read it after the event",
        "Without these waits, the host can prepare the next launches while the {device} is still working, so the "
        "saving is larger than that.",
    ),
    ("blocking_copies", "offload"): RuleWords(
        "Send the gradients of the offloaded optimizer during the backward pass",
        "{calls} in the trace {wait} for copies between host and {device}; those to the host are mostly "
        "gradients for an optimizer on the CPU. Idle time until the next launch, and copies to the host while "
        "nothing computes, cost {time} of {base}, most of all in {subject}{place}.",
        "idle time after calls that wait for copies, most of which have the size of parameters that an optimizer "
        f"on the host sends back, and copies to the host while no kernel runs, cost {COST}",
        "the device's memory has room for the optimizer's state: then don't offload it, which saves its time on "
        "the CPU as well.",
        '"offload_optimizer": {"device": "cpu", "pin_memory": true}, "overlap_comm": true  # DeepSpeed',
        "Without these waits, the host prepares the next launches while the {device} still works, so the saving "
        "is larger than that.",
    ),
    ("host_code", "code"): RuleWords(
        "Move host work off the training loop",
        "For {time} of {base}, the {device} is idle while the host is in {subject}.",
        f"idle stretches of over a millisecond, half of each in one frame or annotation, cost {COST}",
        "it depends on what the device computed just before.",
    ),
    ("host_code", "compile"): RuleWords(
        "Find out why code is compiled again",
        "For {time} of {base}, the {device} is idle while the host compiles code, mostly in {subject}.",
        f"idle stretches of over a millisecond, half of each in one frame or annotation of a compiler, cost "
        f"{COST}",
        "this is the first compilation, and later steps run what it made.",
        'TORCH_LOGS="recompiles"  # in the environment: says why\n'
        "torch.compile(model, dynamic=True)  # if sizes change",
    ),
    ("host_code", "engine"): RuleWords(
        "Move host work out of the iteration",
        "For {time} of {base}, the {device} is idle while the host is in {subject}.",
        f"idle stretches of over a millisecond, half of each in one frame or annotation, cost {COST}",
        "the next batch depends on its result: then only making it faster, or scheduling ahead, helps.",
    ),
    ("host_code", "alone"): RuleWords(
        "Move {subject} out of the step",
        "For {time} of {base}, the host is in {subject} and runs no operator.",
        "most of the time in stretches of over a millisecond without an operator is in one function that mostly "
        f"runs none, which costs {COST}",
        "the step needs its result right away, or waits for it: then only making it faster helps.",
    ),
    ("host_code", "operator"): RuleWords(
        "Look into {subject}",
        "For {time} of {base}, the {device} is idle while the host is in {subject}. An operator this slow "
        "usually computes on the CPU, waits for a lock or another thread, or runs for the first time.",
        f"idle stretches of over a millisecond, half of each in one operator, cost {COST}",
        "it runs for the first time here and is faster in later steps.",
    ),
    ("host_code", "call"): RuleWords(
        "Find out what {subject} waits for",
        "For {time} of {base}, the host is in {subject} while no device work is recorded.",
        f"idle stretches of over a millisecond, half of each in one runtime call, cost {COST}",
        "it waits for something that isn't in this file, such as work from before the recording.",
    ),
    ("short_code", ""): RuleWords(
        "Shorten {subject}",
        "For {time} of {base}, the {device} is idle in gaps of up to a millisecond while the host is in "
        "{subject}, which launches nothing; a call of it takes {duration} (median).",
        "most of the gaps of up to a millisecond that end with a late launch pass in one operator, annotation or "
        f"function that launches nothing and takes 100 µs or more, which costs {COST}",
        "the next launch needs its result: then only making it faster helps.",
    ),
    ("unrecorded_code", ""): RuleWords(
        "Record call stacks to see what the host does",
        "For {time} of {base}, the {device} is idle in stretches of over a millisecond while the host runs code "
        "outside of operators and calls, of which nothing is recorded.",
        "idle stretches of over a millisecond in which nothing of the thread that launches next is recorded cost "
        f"{COST}, and no Python functions are recorded",
        "you know what runs there: then move it out of the loop, or make it faster.",
        "torch.profiler.profile(..., with_stack=True)",
    ),
    ("launch_bound", ""): RuleWords(
        "Reduce launch overhead",
        "For {time} of {base}, the {device} is idle in many short gaps because the host hasn't launched the next "
        "kernel yet; the median launched kernel, copy or memset takes {duration}. CUDA graphs, torch.compile or "
        "fewer small operators help.",
        f"gaps of up to a millisecond that end with a late launch cost {COST}, and no graphs are replayed",
        "shapes or control flow change from step to step. A larger batch helps as well, if it fits.",
        'model = torch.compile(model, mode="reduce-overhead")  # captures CUDA graphs',
    ),
    ("launch_bound", "slow"): RuleWords(
        "Find out why the host is slow to launch",
        "For {time} of {base}, the {device} is idle in stretches of over a millisecond before most launches, "
        "while the host is in code that differs from one to the next; the median launched kernel, copy or memset "
        "takes {duration}. A throttled or busy CPU, or an option of the profiler that records more, may be why.",
        f"stretches of over a millisecond before most launches, at least five per step, cost {COST} beyond what "
        "other advice is about",
        "all of that code has to run before each launch.",
        "torch.profiler.profile(..., with_stack=False, record_shapes=False, profile_memory=False)  # to compare",
    ),
    ("launch_bound", "engine"): RuleWords(
        "Replay iterations as CUDA graphs",
        "For {time} of {base}, the {device} is idle in many short gaps because the host hasn't launched the next "
        "kernel yet; the median launched kernel, copy or memset takes {duration}. A graph replay launches all "
        "kernels of an iteration at once.",
        f"gaps of up to a millisecond that end with a late launch cost {COST}, and no graphs are replayed",
        "most iterations contain prefills, whose sizes aren't captured.",
        "vllm serve MODEL  # without --enforce-eager; SGLang: without --disable-cuda-graph",
    ),
}
"""(id, case) of a rule -> its words."""
