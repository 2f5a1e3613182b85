import { tryClaims } from '../testing/claims';
import { noHostDelay } from './causes';

const WAYS = 'says how to read the number, not what the trace shows';

tryClaims(
  'base',
  {
    'No launch recorded': {
      falseIf: 'a launch of the work was recorded',
      triedBy:
        'tests/corpus/test_idle.py::test_every_idle_nanosecond_has_one_cause_and_the_parts_sum_to_the_step',
    },
    'launch not recorded': {
      falseIf: 'another cause has no subject',
      holds: () => noHostDelay('unlinked')!,
      other: () => noHostDelay('kernel_gap')!,
    },
    'no further work': {
      falseIf: 'work follows',
      holds: () => noHostDelay('tail')!,
      other: () => noHostDelay('kernel_gap')!,
    },
    'A step whose device work was cut off is hatched and left out of every average.': {
      falseIf: 'an average counts it',
      triedBy: 'tests/analyses/diff/test_counted_steps.py::test_a_step_that_was_cut_off_does_not_count',
    },
    'It owns the device work launched from the start of its label to the start of the next.': {
      falseIf: 'work launched after its label is not its own',
      triedBy:
        'tests/views/serving/test_serving.py::test_the_payload_has_a_row_for_each_iteration_and_phases_add_up',
    },
    'A cost is unknown if the recorded batches are too few or too similar.': {
      falseIf: 'a cost of such batches is given',
      triedBy: 'tests/views/serving/test_serving.py::test_what_is_unknown_is_null_with_its_reason',
    },
    'The eight categories add up to the step exactly.': {
      falseIf: 'they add up to another time',
      triedBy: 'tests/corpus/test_laws.py::test_categories_sum_to_each_step',
    },
    "Every idle nanosecond has exactly one cause. A cause's time is not the saving from fixing it.": {
      falseIf: 'the causes of a gap add up to more or less than it',
      triedBy:
        'tests/corpus/test_idle.py::test_every_idle_nanosecond_has_one_cause_and_the_parts_sum_to_the_step',
    },
    'Caught up: there was no blocking call; the device finished its queue faster than the host filled it.': {
      falseIf: 'a call drained the queue, or nothing was left to do',
      triedBy: 'tests/views/idle/test_words.py::test_a_device_that_has_nothing_left_to_do_has_not_caught_up',
    },
    "Communication kernels count; copies and memsets don't. Busy time in the step bar, on the timeline, and in Diff counts any device work, so it is at least as high. One small kernel counts as much as one that fills the GPU.":
      {
        falseIf: 'busy time is lower, or copies count',
        triedBy: 'tests/views/test_busy.py::test_the_glossary_distinguishes_utilization_from_busy',
      },
    'The rest of the utilization is exposed communication: data transfer, or waiting for other ranks.': {
      falseIf: 'other work is in the rest',
      triedBy:
        'tests/analyses/shared/test_utilization.py::test_computing_is_parted_from_waiting_in_collectives',
    },
    'Names of compiled kernels (Triton) mostly show neither; the share is then a lower bound.': {
      falseIf: 'the share counts a kernel whose name shows neither',
      triedBy: 'tests/model/kernels/test_tensor_cores.py::test_the_verdict_follows_from_the_name_of_a_kernel',
    },
    'Python frames and annotations inside are included, as in key_averages().': {
      falseIf: 'they are subtracted',
      triedBy:
        'tests/views/operators/test_operators.py::test_frames_and_annotations_inside_do_not_reduce_self_time',
    },
    "Totals of nested operators overlap, so they don't add up to the run.": {
      falseIf: 'a total leaves out nested operators',
      triedBy:
        'tests/views/operators/test_operators.py::test_self_time_excludes_nested_operators_and_runtime_calls',
    },
    "If the names of some kernels don't show it, the share is a lower bound. A dash means no device time, or no name that shows it.":
      {
        falseIf: 'a name that shows neither counts',
        triedBy:
          'tests/views/operators/test_operators.py::test_tensor_core_use_follows_from_the_kernel_names',
      },
    'A compiled kernel that fuses several kinds counts as the first one in its name: norm, softmax, reduction, elementwise.':
      {
        falseIf: 'it counts as a later one',
        triedBy: 'tests/model/kernels/test_families.py::test_a_name_has_a_family',
      },
    'Below 1, some multiprocessors have no work.': {
      falseIf: 'a launch has another number of blocks per multiprocessor',
      triedBy: 'tests/views/kernels/test_kernels.py::test_blocks_and_occupancy_are_weighted_by_duration',
    },
    'The range profiler runs each kernel alone and several times, so it records no times.': {
      falseIf: 'times are shown of counted kernels',
      triedBy: 'tests/views/roofline/test_counters.py::test_counters_alone_tell_work_but_no_time',
    },
    'Replays of a graph count with the shapes recorded at its capture. Not included: replays without one, compiled kernels, and operators without a FLOP formula.':
      {
        falseIf: 'other device time counts as known',
        triedBy:
          'tests/analyses/roofline/test_table.py::test_coverage_is_the_share_of_device_time_whose_work_is_known',
      },
    "A lower bound unless the FLOPs of all device time are known. Recomputation doesn't count.": {
      falseIf: 'it is called exact although work is unknown',
      triedBy: 'tests/views/overview/test_hardware.py::test_work_that_is_not_known_makes_it_a_lower_bound',
    },
    'An upper bound on what a faster kernel saves. Fusing operators can save more, because it removes memory traffic.':
      {
        falseIf: 'a kernel can be faster than its roofline',
        triedBy: 'tests/analyses/roofline/test_table.py::test_the_roof_is_the_longer_of_computing_and_moving',
      },
    'Accumulating a gradient into its parameter counts for the module whose backward pass ran right before.':
      {
        falseIf: 'it counts for another module',
        triedBy:
          'tests/model/calls/test_autograd.py::test_gradient_accumulation_belongs_to_the_task_before_it_on_its_thread',
      },
    'Self excludes nested operators.': {
      falseIf: 'what a nested operator allocates counts',
      triedBy: 'tests/views/memory/test_tables.py::test_statistics_of_operators',
    },
    'A rank that is late because it waits for another costs nothing. The result does not depend on comparing clocks.':
      {
        falseIf: 'such a rank has a cost, or it changes with the clocks',
        triedBy:
          'tests/views/distributed/test_simulated_delays.py::test_a_rank_that_only_passes_a_delay_on_costs_nothing_and_names_who_holds_it_up',
      },
    'The headline compares how long the rank works with what is typical. If other ranks are late too, its lateness here is smaller.':
      {
        falseIf: 'lateness that others cause is its own',
        triedBy:
          'tests/views/distributed/test_stragglers.py::test_the_lateness_of_a_rank_that_waits_elsewhere_is_not_its_own',
      },
    'Strong evidence takes three separate stretches of dips and a probability of chance below 1%. It shows that the two coincide, not which causes which.':
      {
        falseIf: 'fewer dips are called strong evidence',
        triedBy:
          'tests/analyses/overlap/test_dips.py::test_a_low_clock_in_few_of_the_dips_does_not_explain_them',
      },
    'If two ranges on a stream overlap or touch, the recorder ends both where the first ends.': {
      falseIf: 'the totals differ although no ranges touch',
      triedBy: 'tests/views/overlap/test_build.py::test_what_differs_from_the_record_has_its_reason',
    },
    '≥ means that the time includes waiting for other ranks. 1 GB = 10^9 bytes.': {
      falseIf: 'the ranks were compared, so the time is that of the transfer',
      triedBy: 'src/views/distributed/claims.test.tsx: At least: the time includes waiting for other ranks.',
    },
    'The error is how far apart those ends still are.': {
      falseIf: 'the error is less',
      triedBy:
        'tests/analyses/distributed/test_clocks.py::test_the_error_of_the_reference_is_that_of_the_others',
    },
    "A wave at the foot means that the axis doesn't start at 0. Pale bars are within the noise.": {
      falseIf: 'a bar is pale although it is significant',
      triedBy:
        'src/views/diff/index.test.tsx: draws where the change comes from, and a pair of bars per part of the step',
    },
    'It takes at least two steps per side, and several recordings per side to know the run-to-run noise.': {
      falseIf: 'one step per side proves a change',
      triedBy: 'tests/views/diff/test_verdicts.py::test_a_side_with_one_step_proves_nothing',
    },
  },
  {
    'Estimated from launch sizes, not measured by a hardware counter. CUDA only.': WAYS,
    "High occupancy isn't a goal in itself; low occupancy together with low SM efficiency is a hint.": WAYS,
    "The profiler estimates it from the launch; it isn't a hardware counter.": WAYS,
    'Above 100% means that caches served some of the bytes, or that the byte count is an estimate.': WAYS,
    'Recording stacks makes this part longer than it is without the profiler.': WAYS,
  },
);
