import golden from '../../../../tests/golden/payloads/critical_path.json';
import type { CriticalPathPayload, TargetRow } from '../../api/types';
import { tryClaims } from '../../testing/claims';
import { LOADING, texts, textsOf, type Payloads } from '../../testing/view';
import { PathGroups } from './PathGroups';
import { JobPath, JobPathPanel } from './JobPath';
import { WhatIf } from './WhatIf';
import View from '.';

const page = texts(View, 'critical_path', golden);
const selectors = { run: 'run', worker: 'w', span: '1' };
const { path } = golden.critical_path;
const [target] = golden.critical_path.targets;

const ofTarget = (changes: object) => page({ targets: [{ ...target!, slack_ns: 0, ...changes }] });

const groups = (rows: object[]) =>
  textsOf(<PathGroups by="operator" path={path as CriticalPathPayload['path']} selectors={selectors} />, {
    'critical_path/groups': { ...golden['critical_path/groups'], rows },
  });

const job = (answer: unknown) =>
  textsOf(<JobPath selectors={selectors} workers={3} />, { 'critical_path/ranks': answer } as Payloads);
const compared = golden['critical_path/ranks'];
const [stay] = compared.stays;

const workers = (...names: string[]) =>
  textsOf(<JobPathPanel selectors={selectors} />, {
    workers: { workers: names.map(name => ({ name, spans: [] })) },
    'critical_path/ranks': compared,
  });

const whatIf = (name: string) =>
  textsOf(
    <WhatIf
      target={{ ...(target as unknown as TargetRow), target: name, title: name }}
      percents={golden.critical_path.percents}
      selectors={selectors}
      base="step"
    />,
  );

tryClaims('views/critical_path', {
  'No time passes on the critical path.': {
    falseIf: 'some does',
    holds: groups([]),
    other: groups(golden['critical_path/groups'].rows),
  },
  'each segment counts for its innermost row; the rows sum to the path': {
    falseIf: 'the rows sum to another time',
    triedBy: 'tests/views/critical_path/test_groups.py::test_one_step_alone_and_the_mean_of_all',
  },
  'at each collective it continues on the rank that arrives last': {
    falseIf: 'the run has one rank, or the path goes on elsewhere (the server’s test)',
    holds: workers('a', 'b'),
    other: workers('a'),
  },
  'Computing it from all {} ranks…': {
    falseIf: 'it is computed',
    holds: job(LOADING),
    other: job(compared),
  },
  'No part of the path is known yet.': {
    falseIf: 'all ranks are read',
    holds: job({
      ...compared,
      stays: [],
      total: 0,
      reasons: { ranks: [{ text: '2 traces still to be read' }] },
    }),
    other: job({ ...compared, stays: [], total: 0 }),
  },
  'No rank has a complete step, so there is no critical path. Record at least one whole step.': {
    falseIf: 'ranks are still to be read',
    holds: job({ ...compared, stays: [], total: 0 }),
    other: job({
      ...compared,
      stays: [],
      total: 0,
      reasons: { ranks: [{ text: '2 traces still to be read' }] },
    }),
  },
  'The path stays on this rank.': {
    falseIf: 'the next rank waited for a collective',
    holds: job({ ...compared, stays: [{ ...stay, collective: null }] }),
    other: job({ ...compared, stays: [{ ...stay, collective: 'nccl:all_reduce' }] }),
  },
  'The replay doesn’t apply rooflines: a kernel can’t run faster than its own.': {
    falseIf: 'the target is no kernel',
    holds: whatIf('device'),
    other: whatIf('operator:aten::mm'),
  },
  'each moment counts for what was waited for last': {
    falseIf: 'a moment counts twice',
    triedBy: 'tests/analyses/critical_path/test_simulated.py::test_the_path_tiles_every_step',
  },
  'Nothing would shorten the {} if it ran faster.': {
    falseIf: 'there is no time to shorten',
    holds: page({ targets: [] }),
    other: page({ targets: [], path: { ...path, duration_ns: 0 } }),
  },
  "{}targets overlap, so times don't add up": {
    falseIf: 'no target is part of another',
    triedBy:
      'tests/views/critical_path/test_groups.py::test_a_row_opens_its_longest_segment_and_is_a_target_with_all_that_it_calls',
  },
  'Computed for the largest targets only; select the row to compute it.': {
    falseIf: 'it is computed',
    holds: ofTarget({ step_ns: null }),
    other: ofTarget({}),
  },
  'The host as a whole has no calls.': {
    falseIf: 'the row is an operator, which has',
    holds: ofTarget({ kind: 'host' }),
    other: ofTarget({ kind: 'operator', calls: 3 }),
  },
  'Nothing waits for it.': {
    falseIf: 'something does',
    holds: ofTarget({ slack_ns: null }),
    other: ofTarget({ slack_ns: 5 }),
  },
});
