// What each term on the page means: definition, how it is computed, what to beware of.

export interface Entry {
  title: string;
  text: string;
  formula?: string;
  caveat?: string;
}

export const GLOSSARY = {
  step: {
    title: 'Step',
    text: 'One iteration of the training loop, from one prof.step() to the next.',
    formula: 'its end is pushed to the end of the device work launched in it; the next step begins there',
    caveat: 'A step whose device work was cut off is drawn hatched and is in no average.',
  },
  breakdown: {
    title: 'Breakdown',
    text: 'How a step is spent. An instant counts for the first category, in this order, that covers it.',
    formula: 'Kernel > Memcpy > Memset > Communication > Runtime > DataLoader > CPU Exec > Other',
    caveat: 'The eight sum to the step exactly.',
  },
  kernel: { title: 'Kernel', text: 'At least one device computes (communication kernels excepted).' },
  idle: {
    title: 'Idle time',
    text: 'Time of a step in which the device runs no kernel, copy or memset.',
    formula: 'step = compute + exposed communication + exposed copies + idle, exactly',
  },
  idle_cause: {
    title: 'Cause of idle time',
    text: 'What the thread that submits the next work was in, until it submitted it; then what the device waited for.',
    caveat: 'Every idle nanosecond has one cause. What a change would bring is another question.',
  },
  emptied_by: {
    title: 'Emptied by',
    text: 'The blocking call that was running when the device ran out of work, such as a synchronization.',
    caveat: 'Caught up: no call was; the device got through its queue faster than the host filled it.',
  },
  memcpy: { title: 'Memcpy', text: 'Copies from, to or between devices while no kernel runs.' },
  memset: { title: 'Memset', text: 'Filling device memory while nothing above runs.' },
  communication: {
    title: 'Communication',
    text: 'Collectives between ranks that no computation hides: kernels of NCCL, RCCL and others, and the host time of operations without device work (gloo, mpi).',
  },
  runtime: {
    title: 'Runtime',
    text: 'The host is inside a driver or runtime call (launch, synchronize, allocate) and the device waits.',
  },
  dataloader: {
    title: 'DataLoader',
    text: 'The training loop waits for the next batch and nothing above runs.',
  },
  cpu_exec: { title: 'CPU Exec', text: 'The host runs operators or annotated code and the device waits.' },
  other: { title: 'Other', text: 'Time that nothing in the trace covers.' },
  utilization: {
    title: 'GPU utilization',
    text: 'Share of the time in which at least one kernel runs.',
    formula: 'union of the kernels / time from the first to the last complete step',
    caveat:
      'Kernels of communication count, copies and memsets do not: busy, in the step bar, on the timeline and in Diff, is any work of the device, so it is at least as much. One small kernel on a large GPU counts as much as a full one.',
  },
  computing: {
    title: 'Computing',
    text: 'The part of GPU utilization in which a kernel runs that does not communicate.',
    formula: 'union of the kernels but communication / time from the first to the last complete step',
    caveat:
      'The rest of the utilization is communication that no kernel hides: data that moves, or waiting for other ranks.',
  },
  sm_efficiency: {
    title: 'SM efficiency, estimated',
    text: 'How many of the multiprocessors have work, on average.',
    formula: 'mean of min(1, sum of blocks per SM of the running kernels)',
    caveat: 'An estimate from launch sizes, not a hardware counter. CUDA only.',
  },
  achieved_occupancy: {
    title: 'Achieved occupancy, estimated',
    text: 'Active warps per multiprocessor against the most it can hold.',
    formula: 'estimate per kernel, weighted by its time',
    caveat: 'High occupancy is not a goal in itself; low occupancy with low SM efficiency is a hint.',
  },
  tensor_core_ratio: {
    title: 'Kernel time on Tensor Cores',
    text: 'Share of the time of all kernels that runs on Tensor (or matrix) cores. The kernels of a trace are of three sorts: known to use them, known not to, and such whose name does not tell.',
    formula: 'time of the kernels whose name tells that they use them / time of all kernels',
    caveat: 'Compiled kernels (Triton) mostly do not tell; then the share is the least that it can be.',
  },
  host_self: {
    title: 'Host self time',
    text: 'Time of the operator on the host, without the operators nested in it and without runtime and driver calls.',
    formula: 'duration - nested operators - runtime and driver calls',
    caveat: 'Python frames and annotations inside do not reduce it, as in key_averages().',
  },
  host_total: {
    title: 'Host total time',
    text: 'Time of the operator on the host, all that it calls included.',
    caveat: 'Totals of nested operators overlap: they do not sum to the run.',
  },
  device_self: {
    title: 'Device self time',
    text: 'Kernels, copies and memsets that the operator itself launched.',
    formula: 'sum of their durations; streams are not merged, so it can exceed the wall time',
  },
  device_total: {
    title: 'Device total time',
    text: 'Device work launched by the operator and by the operators nested in it.',
  },
  tc_eligible: {
    title: 'Tensor Cores',
    text: 'The operator could run on Tensor (matrix) cores: matrix products, convolutions, attention; or one nested in it could, or did.',
    formula: 'share of its device self time whose kernels use them, inferred from their names',
    caveat:
      'Where the names of some kernels do not tell, the share is the least that it can be. A dash: no device time, or no name tells.',
  },
  family: {
    title: 'Family',
    text: 'The sort of work that a kernel does: matrix product, convolution, attention, norm, softmax, reduction, elementwise, copy and cast, index and embedding, random, optimizer, communication, memory, other.',
    formula: 'by the name of the kernel; copies and memsets are memory',
    caveat:
      'A compiled kernel that fuses several sorts is the one that its name tells first: norm, softmax, reduction, elementwise.',
  },
  blocks_per_sm: {
    title: 'Blocks per SM, mean',
    text: 'Blocks of the launch per multiprocessor of the device, weighted by duration.',
    caveat: 'Below 1 some multiprocessors have nothing to do.',
  },
  occupancy: {
    title: 'Achieved occupancy, estimated',
    text: 'Active warps per multiprocessor against the most it can hold, weighted by duration.',
    caveat: 'The profiler estimates it from the launch; it is no hardware counter.',
  },
  limiter: {
    title: 'What limits the occupancy',
    text: 'The resource that keeps more blocks off a multiprocessor: threads, registers, shared memory, or too few blocks (grid).',
    formula: 'least of: limit of the device / need of a block',
  },
  unlinked: {
    title: 'Not linked',
    text: 'Device work that no recorded operator launched: no launch is recorded, or it lies outside of every operator.',
    formula: 'device self over all operators + not linked = all kernels, copies and memsets',
  },
  roofline: {
    title: 'Roofline',
    text: 'How many FLOP/s a device can reach at most, by how much is computed for each byte of memory traffic.',
    formula: 'least of: peak of the unit and type, bandwidth x FLOPs per byte',
  },
  counters: {
    title: 'Hardware counters',
    text: 'What the device counted while each kernel ran: instructions, and bytes of device memory. Where they tell the FLOPs or bytes of a call, they take the place of what its shapes say.',
    formula: 'FLOPs = adds + multiplications + 2 x fused multiply-adds + operations of Tensor Cores',
    caveat:
      'The range profiler runs each kernel alone and several times, so no times are recorded beside them.',
  },
  coverage: {
    title: 'Modeled',
    text: 'Share of the device time whose FLOPs or bytes are known, from the recorded shapes of the operators that launched it.',
    caveat: 'Replays of graphs, compiled kernels and operators without a model are not.',
  },
  mfu: {
    title: 'Model FLOPs utilization (MFU)',
    text: 'Share of the peak FLOP/s that the mathematics of the model used during the steps.',
    formula: 'sum of FLOPs of matrix operators / peak of their type, over the time of the steps',
    caveat: 'A lower bound unless all device time is modeled. Recomputation does not count.',
  },
  hfu: {
    title: 'Hardware FLOPs utilization (HFU)',
    text: 'The same of the FLOPs that ran: with what checkpointing computes again, and what backward of attention repeats.',
  },
  of_the_roof: {
    title: 'Of the roof',
    text: 'The least time that the work could take on this device, as a share of the time that it took.',
    formula: 'longer of FLOPs / peak and bytes / bandwidth, over the measured time',
    caveat: 'Above 100% a cache served the bytes, or they are estimated.',
  },
  saved_at_the_roof: {
    title: 'Saved at the roof',
    text: 'What the row took beyond the least time that its work could take.',
    caveat:
      'An upper bound of what a faster kernel saves. Fusing operators can save more: it removes the traffic.',
  },
  bound: {
    title: 'Bound by',
    text: 'Compute or memory: which of the two takes longer at its peak. Latency: calls under 10 µs and 25% of the roof. Launch: the device idled before the calls for longer than they ran.',
  },
  bandwidth: {
    title: 'Bandwidth',
    text: 'Bytes moved per second while the copies ran.',
    formula: 'sum of bytes / sum of durations, 1 GB = 10^9 bytes',
  },
  health: {
    title: 'Trace health',
    text: 'What was skipped, repaired or doubtful while the file was read. Everything else is complete.',
  },
  module_operators: {
    title: 'Operators of a module',
    text: 'Operators that the module calls directly in its forward pass; those inside them are not counted again.',
  },
  module_host_self: {
    title: 'Host self of a module',
    text: 'Time in calls of the module outside of its operators and of the modules inside it: Python and the framework.',
    formula: 'total = self + its operators + totals of the modules inside',
    caveat: 'Recording stacks makes this part longer than it is without the profiler.',
  },
  module_host_exclusive: {
    title: 'Host exclusive',
    text: 'Host self and operators of all modules of the class, without the modules inside them: nothing counts twice.',
  },
  module_backward: {
    title: 'Backward pass of a module',
    text: 'Autograd work that differentiates operators of the module, linked by the flow from forward to backward or by sequence number.',
    caveat:
      'The sum of a gradient into its parameter counts for the module whose backward came right before.',
  },
  not_linked: {
    title: 'Not linked',
    text: 'Device work for which neither a launch nor an operator is recorded. It belongs to no module.',
    formula: 'device self of all modules + outside any module + not linked = all device time',
  },
  hook_self: {
    title: 'Host self of a hook',
    text: 'Time in the hook outside of operators and of the hooks inside it.',
    formula: 'total = self + its operators + totals of the hooks inside',
  },
  memory_live: {
    title: 'Live memory',
    text: 'Memory allocated and not yet released at this instant, grouped by what allocated it: the innermost operator, or the operator around it for those that only provide memory.',
    formula: 'rows + from before the trace = allocated, as the allocator recorded it',
  },
  memory_older: {
    title: 'From before the trace',
    text: 'Memory that was allocated before the recording began: the model, optimizer state, caches.',
    formula: 'recorded total − all live blocks',
  },
  memory_increase: {
    title: 'Size increase',
    text: 'Bytes allocated minus bytes released while the operator runs, on its thread.',
    caveat: 'Self is without the operators inside.',
  },
  memory_outside: {
    title: 'Outside of operators',
    text: 'Memory events while no operator runs on their thread; most are releases, when Python frees a tensor.',
    formula: 'self of all operators + outside = all memory events',
  },
  straggler: {
    title: 'Straggler',
    text: 'A rank that arrives at collectives after the others and keeps them waiting.',
    formula:
      'cost = how much sooner the others would be done with a step if it worked as long as the median rank',
    caveat:
      'A rank that is late because it waits for another costs nothing. No clocks are compared for that.',
  },
  meanwhile: {
    title: 'Meanwhile',
    text: 'What the rank did between one arrival at a collective and its next, beside a rank that worked as long as usual.',
    formula: 'summed over the windows that make up 95% of what it worked longer than usual',
  },
  late: {
    title: 'Lateness',
    text: 'How long after the median rank this one arrived at the collectives of the step, added up.',
  },
  computation: {
    title: 'Computation',
    text: 'Kernels that are not communication (without a GPU: CPU Exec outside of communication), hidden communication included.',
    formula: 'step = computation + exposed communication + neither',
  },
  exposed: {
    title: 'Exposed communication',
    text: 'Communication that no computation hides, waiting for other ranks included.',
  },
  stream_overlap: {
    title: 'Overlap',
    text: 'Computation while an all-reduce or a reduce-scatter runs on its own stream. All-gathers share a stream with other work and are left out, as the recorder does.',
    formula: 'overlap_ratio = overlap / computation',
  },
  recorded_overlap: {
    title: 'Recorded and recomputed',
    text: 'The recorder writes totals beside the ranges they are made of. Here they are made again from the ranges.',
    caveat: 'Where two ranges of one stream run at once or meet, the recorder ends both with the first.',
  },
  neither: {
    title: 'Neither',
    text: 'Neither computation nor communication runs: copies, or an idle device that waits for its host.',
  },
  transfer: {
    title: 'Transfer and waiting',
    text: 'A collective moves data once the last rank has arrived; before that it waits.',
    formula: 'transfer = shortest latency among the ranks; waiting = latency − transfer',
  },
  rank_time: { title: 'Rank time', text: 'Added up over the ranks that take part.' },
  skew: {
    title: 'Skew of arrival',
    text: 'From the first to the last arrival of the ranks, on one clock.',
  },
  bus_bandwidth: {
    title: 'Bus bandwidth',
    text: 'Bytes per second of transfer, times the factor of the collective, so that it compares with the speed of the links.',
    formula: 'all-reduce × 2(n−1)/n; all-gather, reduce-scatter, all-to-all × (n−1)/n',
    caveat: '≥: the time includes waiting for other ranks. GB are decimal.',
  },
  job_clock: {
    title: 'Clock of the job',
    text: 'Clocks of ranks differ. They are aligned by the time of day in the files, then by the ends of collectives, which all ranks leave together.',
    caveat: 'The error is how far those ends still lie apart.',
  },
  waterfall: {
    title: 'Waterfall',
    text: 'From the mean step of the base to that of the candidate; each bar is what one part adds or saves.',
    formula: 'base + all bars = candidate, to the ns',
    caveat: 'A wave at the foot says that the axis does not begin at 0. Pale bars are within the noise.',
  },
  significance: {
    title: 'Significance',
    text: 'Slower or faster: the 95% interval of a typical step (Welch and Yuen) excludes 0, the change passes the false discovery rate, and it is at least the least that matters. Unchanged: the whole interval is smaller than that. Cannot tell: neither is proven.',
    caveat: 'It takes two steps of each side, and several recordings of each to know how recordings differ.',
  },
  false_discovery: {
    title: 'False discovery rate',
    text: 'Many rows are tested at once; this is the share of false alarms to expect if this row and all more certain ones count as significant (Benjamini and Hochberg).',
  },
} satisfies Record<string, Entry>;

export type TermId = keyof typeof GLOSSARY;
