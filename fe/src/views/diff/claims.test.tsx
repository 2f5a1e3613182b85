import golden from '../../../../tests/golden/payloads/diff.json';
import type { DiffChange, DiffOperator, DiffPayload } from '../../api/types';
import { tryClaims } from '../../testing/claims';
import { LOADING, texts, textsOf } from '../../testing/view';
import { operatorRows } from './select';
import { DiffTable } from './Table';
import { TotalsTable } from './Totals';
import { Verdict } from './Verdict';
import View from '.';

const base = { run: 'base', worker: 'w', span: '1' };
const page = texts(View, 'diff', golden);
const [operator] = golden.diff.level.operators;
const unknown = { base_ns: null, candidate_ns: null, delta_ns: null, delta_ratio: null, q: null };

/** Draw the table of operators with changes of its only one. */
const row = (changes: object, change: object = {}, only = false) =>
  textsOf(
    <DiffTable
      name="operators"
      title="Operator"
      rows={operatorRows(
        [{ ...operator!, host_self: { ...operator!.host_self, ...change }, ...changes } as DiffOperator],
        'host_self',
      )}
      before={null}
      only={only}
      empty=""
    />,
  );

const totals = (changes: object) =>
  textsOf(<TotalsTable payload={{ ...golden.diff, ...changes } as unknown as DiffPayload} />);

const verdict = (change: Partial<DiffChange>) =>
  textsOf(<Verdict change={{ ...golden.diff.step, ...change } as never} />);

const part = (answer: unknown, table: string) =>
  page({}, { base, params: { part: '0', table }, parts: { 'diff/part': answer } });
const nothing = { ...golden['diff/part'], path: '0', parts: [], operators: [] };

const phase = {
  phase: 'decode',
  iterations: [10, 10],
  tokens: [80, 80],
  iteration: golden.diff.step,
  per_token: golden.diff.step,
};

tryClaims(
  'views/diff',
  {
    'Only in the candidate.': {
      falseIf: 'the base has it, too',
      holds: row({ status: 'added' }),
      other: row({ status: 'matched' }),
    },
    'Only in the base.': {
      falseIf: 'the candidate has it, too',
      holds: row({ status: 'removed' }),
      other: row({ status: 'matched' }),
    },
    'In the base, worker processes that weren’t recorded load the data.': {
      falseIf: 'they do so in the candidate',
      holds: row({ status: 'moved_in' }),
      other: row({ status: 'moved_out' }),
    },
    'In the candidate, worker processes that weren’t recorded load the data.': {
      falseIf: 'they do so in the base',
      holds: row({ status: 'moved_out' }),
      other: row({ status: 'moved_in' }),
    },
    'Only one side recorded such events, so it may be neither new nor gone.': {
      falseIf: 'both sides recorded such events',
      holds: row({ status: 'not_recorded' }),
      other: row({ status: 'added' }),
    },
    'No significant changes. Clear “Only significant changes” to see every row.': {
      falseIf: 'a change is significant',
      holds: row({}, { verdict: 'cannot_tell' }, true),
      other: row({}, { verdict: 'slower' }, true),
    },
    'It launched no device work, or its FLOPs are unknown.': {
      falseIf: 'its FLOPs are known',
      holds: row({
        work: { base_flops: 1e9, candidate_flops: 1e9, base_flops_per_s: null, candidate_flops_per_s: null },
      }),
      other: row({
        work: { base_flops: 1e9, candidate_flops: 1e9, base_flops_per_s: 1e12, candidate_flops_per_s: 1e12 },
      }),
    },
    'Not recorded on at least one side.': {
      falseIf: 'both sides recorded it',
      holds: row({}, unknown),
      other: row({}, { delta_ratio: null, q: null }),
    },
    'It isn’t in the base.': {
      falseIf: 'the base has it, but the candidate did not record it',
      holds: row({ status: 'added' }, { base_ns: 0, delta_ratio: null }),
      other: row({ status: 'not_recorded' }, { ...unknown, base_ns: 5000 }),
    },
    'It takes no time in the base.': {
      falseIf: 'it is not in the base, or not recorded there',
      holds: row({}, { base_ns: 0, delta_ratio: null }),
      other: row({ status: 'added' }, { base_ns: 0, delta_ratio: null }),
    },
    'Too small to be tested, or too few steps.': {
      falseIf: 'one side did not record it',
      holds: row({}, { q: null }),
      other: row({}, unknown),
    },
    'Mean {}, all {}s': {
      falseIf: 'the headline’s is that mean',
      holds: totals({ step: { ...golden.diff.step, base_ns: 2_000_000 } }),
      other: totals({}),
    },
    'One value per recording, so there’s no verdict': {
      falseIf: 'a step has the value',
      holds: totals({}),
      other: totals({ devices: [], memory: [] }),
    },
    'Average iteration of all phases': {
      falseIf: 'the times are of steps',
      holds: totals({ serving: [phase] }),
      other: totals({}),
    },
    'Proven, and large enough to matter.': {
      falseIf: 'the change may be noise',
      holds: verdict({ verdict: 'slower' }),
      other: verdict({ verdict: 'cannot_tell' }),
    },
    'Any change is too small to matter.': {
      falseIf: 'one may matter',
      holds: verdict({ verdict: 'unchanged' }),
      other: verdict({ verdict: 'cannot_tell' }),
    },
    'Exactly the same times throughout.': {
      falseIf: 'a time differs',
      holds: verdict({ verdict: 'equal' }),
      other: verdict({ verdict: 'unchanged' }),
    },
    'The recordings prove neither a change nor the absence of one.': {
      falseIf: 'they prove one',
      holds: verdict({ verdict: 'cannot_tell' }),
      other: verdict({ verdict: 'unchanged' }),
    },
    'At least one side doesn’t record it.': {
      falseIf: 'both record it',
      holds: verdict({ verdict: 'unknown' }),
      other: verdict({ verdict: 'cannot_tell' }),
    },
    '95% interval: {} to {}.': {
      falseIf: 'there is none',
      holds: verdict({}),
      other: verdict({ low_ns: null, high_ns: null }),
    },
    'About {} per side would settle it.': {
      falseIf: 'the change is settled',
      holds: verdict({ verdict: 'cannot_tell', needed: 40 }),
      other: verdict({ verdict: 'faster', needed: null }),
    },
    'False discovery rate {}.': {
      falseIf: 'it was not tested',
      holds: verdict({ q: 0.2 }),
      other: verdict({ q: null }),
    },
    'Only significant changes': {
      falseIf: 'it lists one that is not',
      says: /aten::mm/,
      holds: row({}, { verdict: 'slower' }, true),
      other: row({}, { verdict: 'unchanged' }, true),
    },
    'This part has no smaller parts.': {
      falseIf: 'they are still to be read',
      holds: part(nothing, ''),
      other: part(LOADING, ''),
    },
    'Neither side has any {} here. Choose a larger part or another table.': {
      falseIf: 'they are still to be read, or have failed',
      holds: part(nothing, ''),
      other: part(LOADING, ''),
    },
  },
  {},
);
