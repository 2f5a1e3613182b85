// What each term on the page means: definition, formula, and what to watch out for.

/** The explanation in one hover card. */
export interface GlossaryEntry {
  title: string;
  text: string;
  formula?: string;
  caveat?: string;
}

export const GLOSSARY = {
  step: {
    title: 'Step',
    text: 'One iteration of the training loop, from one prof.step() to the next.',
    formula: 'a step ends when the device work launched in it ends; the next step starts there',
    caveat: 'A step whose device work was cut off is hatched and left out of every average.',
  },
  iteration: {
    title: 'Iteration',
    text: 'One batch that an inference engine runs: prompts that are read (prefill), requests that generate a token each (decode), or both (mixed).',
    formula:
      'duration: from the end of the previous device work to the end of its own, excluding waits for requests',
    caveat: 'It owns the device work launched from the start of its label to the start of the next.',
  },
  iteration_cost: {
    title: 'What an iteration costs',
    text: 'Kernel time of a batch as a fixed part plus a cost for each prompt token, each request that decodes, and each token in the KV cache.',
    formula: 'fitted by robust, non-negative least squares; ranges are 95% intervals',
    caveat: 'A cost is unknown if the recorded batches are too few or too similar.',
  },
  breakdown: {
    title: 'Breakdown',
    text: 'How the time of a step is spent. Each instant counts for the first category that covers it, in this order.',
    formula: 'Kernel > Memcpy > Memset > Communication > Runtime > DataLoader > CPU Exec > Other',
    caveat: 'The eight categories add up to the step exactly.',
  },
  kernel: {
    title: 'Kernel',
    text: 'At least one device computes. Communication kernels count as Communication.',
  },
  idle: {
    title: 'Idle time',
    text: 'Time in a step when the device runs no kernel, copy, or memset.',
    formula: 'step = compute + exposed communication + exposed copies + idle, exactly',
  },
  idle_cause: {
    title: 'Cause of idle time',
    text: 'What the host thread that submits the next work was doing until it submitted it; after that, what the device itself waited for.',
    caveat: "Every idle nanosecond has exactly one cause. A cause's time is not the saving from fixing it.",
  },
  emptied_by: {
    title: 'Queue drained by',
    text: 'The blocking call, such as a synchronization, that was running when the device ran out of work.',
    caveat:
      'Caught up: there was no blocking call; the device finished its queue faster than the host filled it.',
  },
  memcpy: { title: 'Memcpy', text: 'Copies from, to, or between devices while no kernel runs.' },
  memset: { title: 'Memset', text: 'Device memory is being filled and nothing listed above runs.' },
  communication: {
    title: 'Communication',
    text: 'Collectives between ranks that do not overlap with compute: kernels of NCCL, RCCL, and others, and the host time of operations without device work (gloo, mpi).',
  },
  runtime: {
    title: 'Runtime',
    text: 'The host is in a driver or runtime call (launch, synchronize, allocate) while the device is idle.',
  },
  dataloader: {
    title: 'DataLoader',
    text: 'The training loop waits for the next batch and nothing listed above runs.',
  },
  cpu_exec: {
    title: 'CPU Exec',
    text: 'The host runs operators or annotated code while the device is idle.',
  },
  other: { title: 'Other', text: 'Time that no recorded event covers.' },
  utilization: {
    title: 'GPU utilization',
    text: 'Share of time during which at least one kernel runs.',
    formula: 'union of the kernels in typical steps / time of these steps',
    caveat:
      "Communication kernels count; copies and memsets don't. Busy time in the step bar, on the timeline, and in Diff counts any device work, so it is at least as high. One small kernel counts as much as one that fills the GPU.",
  },
  computing: {
    title: 'Computing',
    text: 'The part of GPU utilization during which a kernel other than communication runs.',
    formula: 'union of the kernels other than communication in typical steps / time of these steps',
    caveat:
      'The rest of the utilization is exposed communication: data transfer, or waiting for other ranks.',
  },
  sm_efficiency: {
    title: 'SM efficiency, estimated',
    text: 'Average share of the multiprocessors that have work.',
    formula: 'mean of min(1, sum of blocks per SM of the running kernels)',
    caveat: 'Estimated from launch sizes, not measured by a hardware counter. CUDA only.',
  },
  achieved_occupancy: {
    title: 'Achieved occupancy, estimated',
    text: 'Active warps per multiprocessor as a share of the maximum it supports.',
    formula: 'estimate per kernel, weighted by its time',
    caveat: "High occupancy isn't a goal in itself; low occupancy together with low SM efficiency is a hint.",
  },
  tensor_core_ratio: {
    title: 'Kernel time on Tensor Cores',
    text: "Share of all kernel time on Tensor (or matrix) cores. It is inferred from kernel names: a name shows that the kernel uses them, that it doesn't, or neither.",
    formula: 'time of the kernels whose name shows Tensor Core use / time of all kernels',
    caveat: 'Names of compiled kernels (Triton) mostly show neither; the share is then a lower bound.',
  },
  host_self: {
    title: 'Host self time',
    text: 'Host time of the operator without nested operators and without runtime and driver calls.',
    formula: 'duration - nested operators - runtime and driver calls',
    caveat: 'Python frames and annotations inside are included, as in key_averages().',
  },
  host_total: {
    title: 'Host total time',
    text: 'Host time of the operator, including everything it calls.',
    caveat: "Totals of nested operators overlap, so they don't add up to the run.",
  },
  device_self: {
    title: 'Device self time',
    text: 'Kernels, copies, and memsets that the operator itself launched.',
    formula: 'sum of their durations; streams can overlap, so it can exceed wall time',
  },
  device_total: {
    title: 'Device total time',
    text: 'Device work launched by the operator and by the operators nested in it.',
  },
  tc_eligible: {
    title: 'Tensor Cores',
    text: 'The operator could run on Tensor (matrix) cores: matrix products, convolutions, attention; or an operator nested in it could, or did.',
    formula: 'share of its device self time whose kernels use them, inferred from their names',
    caveat:
      "If the names of some kernels don't show it, the share is a lower bound. A dash means no device time, or no name that shows it.",
  },
  family: {
    title: 'Family',
    text: 'The kind of work a kernel does: matrix product, convolution, attention, norm, softmax, reduction, elementwise, copy and cast, index and embedding, random, optimizer, communication, memory, other.',
    formula: 'from the name of the kernel; copies and memsets are memory',
    caveat:
      'A compiled kernel that fuses several kinds counts as the first one in its name: norm, softmax, reduction, elementwise.',
  },
  blocks_per_sm: {
    title: 'Blocks per SM, mean',
    text: 'Thread blocks of the launch per multiprocessor of the device, weighted by duration.',
    caveat: 'Below 1, some multiprocessors have no work.',
  },
  occupancy: {
    title: 'Achieved occupancy, estimated',
    text: 'Active warps per multiprocessor as a share of the maximum it supports, weighted by duration.',
    caveat: "The profiler estimates it from the launch; it isn't a hardware counter.",
  },
  limiter: {
    title: 'Occupancy limiter',
    text: 'The resource that keeps more blocks off a multiprocessor: threads, registers, shared memory, or the grid (too few blocks).',
    formula: 'the resource with the smallest ratio of device limit to need per block',
  },
  unlinked: {
    title: 'Not linked',
    text: "Device work that no recorded operator launched: its launch wasn't recorded, or lies outside every operator.",
    formula: 'device self over all operators + not linked = all kernels, copies, and memsets',
  },
  roofline: {
    title: 'Roofline',
    text: 'The highest FLOP/s that a device can reach, given the FLOPs per byte of memory traffic.',
    formula: 'min(peak of the unit and data type, bandwidth × FLOPs per byte)',
  },
  counters: {
    title: 'Hardware counters',
    text: 'What the device counted while each kernel ran: instructions, and bytes of device memory. Where counters give the FLOPs or bytes of a call, they replace the estimate from its shapes.',
    formula: 'FLOPs = adds + multiplications + 2 × fused multiply-adds + Tensor Core operations',
    caveat: 'The range profiler runs each kernel alone and several times, so it records no times.',
  },
  coverage: {
    title: 'Time with known FLOPs or bytes',
    text: 'Share of device time whose FLOPs or bytes are known, from the recorded shapes of the operators that launched it.',
    caveat:
      'Replays of a graph count with the shapes recorded at its capture. Not included: replays without one, compiled kernels, and operators without a FLOP formula.',
  },
  mfu: {
    title: 'Model FLOPs utilization (MFU)',
    text: 'Share of peak FLOP/s that the math of the model used during the steps.',
    formula: 'sum over matrix operators of FLOPs / peak of their data type, divided by the time of the steps',
    caveat: "A lower bound unless the FLOPs of all device time are known. Recomputation doesn't count.",
  },
  hfu: {
    title: 'Hardware FLOPs utilization (HFU)',
    text: 'Like MFU, but for all FLOPs that ran, including recomputation by checkpointing and by the backward pass of attention.',
  },
  roofline_share: {
    title: 'Share of roofline',
    text: 'The shortest possible time for this work on this device, as a share of the measured time.',
    formula: 'max(FLOPs / peak, bytes / bandwidth) / measured time',
    caveat: 'Above 100% means that caches served some of the bytes, or that the byte count is an estimate.',
  },
  roofline_saving: {
    title: 'Saving at the roofline',
    text: 'Measured time minus the shortest possible time for the same work.',
    caveat:
      'An upper bound on what a faster kernel saves. Fusing operators can save more, because it removes memory traffic.',
  },
  bound: {
    title: 'Bound by',
    text: 'Compute or memory: whichever takes longer at its peak. Latency: calls under 10 µs and under 25% of the roofline. Launch: the device was idle before the calls for longer than they ran.',
  },
  bandwidth: {
    title: 'Bandwidth',
    text: 'Bytes moved per second while the copies ran.',
    formula: 'sum of bytes / sum of durations, 1 GB = 10^9 bytes',
  },
  health: {
    title: 'Trace health',
    text: 'What was skipped, repaired, or questionable when the file was read. Everything else is complete.',
  },
  module_operators: {
    title: 'Operators of a module',
    text: 'Operators that the module calls directly in its forward pass, without the operators nested in them.',
  },
  module_host_self: {
    title: 'Host self time of a module',
    text: 'Host time in calls of the module outside its operators and submodules: Python and the framework.',
    formula: 'total = self + its operators + totals of its submodules',
    caveat: 'Recording stacks makes this part longer than it is without the profiler.',
  },
  module_host_exclusive: {
    title: 'Host exclusive time',
    text: 'Host self time and operators of all modules of the class, without their submodules, so nothing counts twice.',
  },
  module_backward: {
    title: 'Backward pass of a module',
    text: 'Autograd work that differentiates operators of the module, linked by the flow from forward to backward or by sequence number.',
    caveat:
      'Accumulating a gradient into its parameter counts for the module whose backward pass ran right before.',
  },
  not_linked: {
    title: 'Not linked',
    text: 'Device work for which neither a launch nor an operator was recorded, or which a graph replayed without a known capture, so its module is unknown.',
    formula: 'device self of all modules + outside any module + not linked = all device time',
  },
  hook_self: {
    title: 'Host self time of a hook',
    text: 'Host time in the hook outside operators and nested hooks.',
    formula: 'total = self + its operators + totals of nested hooks',
  },
  memory_live: {
    title: 'Live memory',
    text: 'Memory allocated and not yet released at this instant, grouped by the innermost operator that allocated it. For operators that only allocate, the enclosing operator counts.',
    formula: 'rows + allocated before the trace = total recorded by the allocator',
  },
  memory_before_trace: {
    title: 'Allocated before the trace',
    text: 'Memory that was allocated before the trace started: the model, optimizer state, caches.',
    formula: 'recorded total − all live blocks',
  },
  memory_increase: {
    title: 'Size increase',
    text: 'Bytes allocated minus bytes released while the operator runs, on its thread.',
    caveat: 'Self excludes nested operators.',
  },
  memory_outside: {
    title: 'Outside operators',
    text: 'Memory events on a thread that runs no operator; most are releases, when Python frees a tensor.',
    formula: 'self of all operators + outside = all memory events',
  },
  straggler: {
    title: 'Straggler',
    text: 'A rank that arrives late at collectives, so the other ranks wait for it.',
    formula:
      'cost = how much sooner the other ranks would finish a step if this one worked as long as the median rank',
    caveat:
      'A rank that is late because it waits for another costs nothing. The result does not depend on comparing clocks.',
  },
  straggler_activity: {
    title: 'Straggler activity',
    text: 'What the rank did between one arrival at a collective and the next, next to a rank that worked for a typical time.',
    formula: 'summed over the intervals that make up 95% of its extra time',
  },
  late: {
    title: 'Lateness',
    text: 'How long after the median rank this one arrived at the collectives of the step, summed.',
    caveat:
      'The headline compares how long the rank works with what is typical. If other ranks are late too, its lateness here is smaller.',
  },
  computation: {
    title: 'Computation',
    text: 'Kernels other than communication (without a GPU: CPU Exec outside communication), including those that communication overlaps with.',
    formula: 'step = computation + exposed communication + neither',
  },
  exposed: {
    title: 'Exposed communication',
    text: 'Communication that does not overlap with compute, including waiting for other ranks.',
  },
  stream_overlap: {
    title: 'Overlap',
    text: 'Computation while an all-reduce or a reduce-scatter runs on its own stream. All-gathers share a stream with other work and are left out, as the recorder does.',
    formula: 'overlap_ratio = overlap / computation',
  },
  overlap_dip: {
    title: 'Overlap dip',
    text: 'An iteration whose overlap / computation is below 80% of the median of its rank. Readings of rocm-smi after these iterations are compared with readings after the others.',
    formula: 'Fisher’s exact test, times the number of readings compared',
    caveat:
      'Strong evidence takes three separate stretches of dips and a probability of chance below 1%. It shows that the two coincide, not which causes which.',
  },
  recorded_overlap: {
    title: 'Recorded and recomputed',
    text: 'The recorder writes totals next to the ranges they come from. The recomputed totals are made from these ranges.',
    caveat: 'If two ranges on a stream overlap or touch, the recorder ends both where the first ends.',
  },
  neither: {
    title: 'Neither',
    text: 'Neither computation nor communication runs: copies, or an idle device that waits for its host.',
  },
  transfer: {
    title: 'Transfer and waiting',
    text: 'A collective moves data once the last rank has arrived; until then it waits.',
    formula: 'transfer = shortest latency among the ranks; waiting = latency − transfer',
  },
  rank_time: { title: 'Rank time', text: 'Time summed over all participating ranks.' },
  skew: {
    title: 'Arrival skew',
    text: 'Time between the first and the last rank’s arrival, on one clock.',
  },
  bus_bandwidth: {
    title: 'Bus bandwidth',
    text: 'Bytes transferred per second, times a factor for the kind of collective, so that it can be compared with link speed.',
    formula: 'all-reduce × 2(n−1)/n; all-gather, reduce-scatter, all-to-all × (n−1)/n',
    caveat: '≥ means that the time includes waiting for other ranks. 1 GB = 10^9 bytes.',
  },
  job_clock: {
    title: 'Job clock',
    text: 'Ranks have different clocks. They are aligned by the time of day in the files, then by the ends of collectives, which all ranks leave together.',
    caveat: 'The error is how far apart those ends still are.',
  },
  waterfall: {
    title: 'Waterfall',
    text: 'From the mean step of the base to that of the candidate; each bar is the time that one part adds or saves.',
    formula: 'base + all bars = candidate, to the ns',
    caveat: "A wave at the foot means that the axis doesn't start at 0. Pale bars are within the noise.",
  },
  significance: {
    title: 'Significance',
    text: "Slower or faster: the 95% interval of the change in a typical step (Welch's t) excludes 0, the change passes the false discovery rate, and it is at least the smallest change that matters. Unchanged: the entire interval is smaller than that. Inconclusive: neither is shown.",
    caveat:
      'It takes at least two steps per side, and several recordings per side to know the run-to-run noise.',
  },
  false_discovery: {
    title: 'False discovery rate',
    text: 'Many rows are tested at once. This is the share of false alarms to expect if this row and all more certain ones count as significant (Benjamini and Hochberg).',
  },
} satisfies Record<string, GlossaryEntry>;

export type TermId = keyof typeof GLOSSARY;
