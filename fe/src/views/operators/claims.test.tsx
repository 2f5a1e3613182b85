import golden from '../../../../tests/golden/payloads/operators.json';
import { tryClaims } from '../../testing/claims';
import { texts } from '../../testing/view';
import View from '.';

const page = texts(View, 'operators', golden);
const [operator] = golden.operators.rows;

/** Draw the page with the details of its operator beside the table. */
const detail = (changes: object, parts: object = {}) =>
  page(
    { rows: [{ ...operator, ...changes }] },
    { params: { select: operator!.name }, parts: { ...golden, ...parts } },
  );
const calls = (count: number) =>
  detail({}, { 'operators/instances': { ...golden['operators/instances'], calls: count } });
const stacks = (bare: number, count: number, host_total_ns: number) =>
  detail(
    {},
    {
      'operators/stacks': {
        ...golden['operators/stacks'],
        reason: null,
        bare,
        frames: [
          {
            text: 'main',
            file: null,
            line: null,
            parent: null,
            calls: 1,
            host_ns: host_total_ns,
            device_ns: host_total_ns,
            library: false,
          },
        ],
        stacks: Array.from({ length: count }, (_, event) => ({
          event,
          calls: 1,
          host_total_ns,
          device_total_ns: host_total_ns,
          frames: [{ text: `f${event}`, file: null, line: null }],
          path: [],
        })),
      },
    },
  );
const grouped = (group_by: string, changes: object, reasons: object = {}) =>
  page({
    group_by,
    rows: [{ ...operator, ...changes }],
    reasons: { ...golden.operators.reasons, ...reasons },
  });

tryClaims('views/operators', {
  '· {} unknown (the kernel names don’t tell)': {
    falseIf: 'they tell of all kernels',
    holds: detail({ tc_self_unknown: 0.5 }),
    other: detail({ tc_self_unknown: 0 }),
  },
  'No call has {} time.': { falseIf: 'one has', holds: calls(0), other: calls(3) },
  '{} without a stack.': { falseIf: 'all have one', holds: stacks(2, 1, 5), other: stacks(0, 1, 5) },
  ', all in the flame graph above': {
    falseIf: 'none of them takes time, so no flame graph is drawn',
    holds: stacks(0, 200, 5),
    other: stacks(0, 200, 0),
  },
  'No operator matches these filters.': {
    falseIf: 'no filter is set',
    holds: page({ rows: [] }, { params: { phase: 'forward' } }),
    other: page({ rows: [] }),
  },
  'No operators were recorded.': {
    falseIf: 'a filter hides them',
    holds: page({ rows: [] }),
    other: page({ rows: [] }, { params: { phase: 'forward' } }),
  },
  'not linked {} {} in {} ·': {
    falseIf: 'an operator launched all device work',
    holds: page({ unlinked: { calls: 2, device_ns: 500 } }),
    other: page(),
  },
  'No shapes were recorded for this call.': {
    falseIf: 'none were recorded at all, for which there is another reason',
    holds: page({
      group_by: 'shape',
      reasons: { tc_self_ratio: golden.operators.reasons.tc_self_ratio },
    }),
    other: grouped('shape', {}),
  },
  'Outside any module.': {
    falseIf: 'a module called it',
    holds: grouped('module', { module: null }),
    other: grouped('module', { module: 'Net_0' }),
  },
  'Outside any annotation.': {
    falseIf: 'an annotation is around it',
    holds: grouped('annotation', { annotation: null }),
    other: grouped('annotation', { annotation: 'forward' }),
  },
  'No device time.': {
    falseIf: 'it has',
    triedBy: 'tests/views/operators/test_operators.py::test_tensor_core_use_follows_from_the_kernel_names',
  },
});
