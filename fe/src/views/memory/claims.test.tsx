import { screen } from '@testing-library/react';
import golden from '../../../../tests/golden/payloads/memory.json';
import { tryClaims } from '../../testing/claims';
import { pick, textsOf } from '../../testing/view';
import { Blocks } from './Blocks';
import { ByOperator } from './ByOperator';
import { Growth } from './Growth';
import { Live } from './Live';
import { SegmentMap } from './files/SegmentMap';
import { SnapshotCompare } from './files/SnapshotCompare';
import { SnapshotFit } from './files/SnapshotFit';
import { SnapshotInstant } from './files/SnapshotInstant';
import { SnapshotPair } from './files/SnapshotPair';
import { UnreadFile } from './files/UnreadFile';

const nothing = () => undefined;
const [block] = golden['memory/events'].rows;
const blocks = (changes: object, state = '', rows: object[] = [{ ...block, ...changes }]) =>
  textsOf(
    <Blocks
      selectors={{ run: 'run' }}
      device="GPU 0"
      range={null}
      span={{ begin: 0, end: 1000 }}
      hasModules
      sort="size"
      search=""
      state={state}
      onSort={nothing}
      onSearch={nothing}
      onEvent={nothing}
      before={null}
    />,
    { 'memory/events': { ...golden['memory/events'], rows, total: rows.length } },
  );

const byOperator = (ranged: boolean) =>
  textsOf(
    <ByOperator
      operators={{ ...golden['memory/operators'], rows: [] }}
      ranged={ranged}
      onEvent={nothing}
      before={null}
    />,
  );

const [growing] = golden.memory.growth;
const growth = (changes: object, holder: object = {}) =>
  textsOf(
    <Growth
      growth={
        {
          ...growing!,
          ...changes,
          holders: growing!.holders.map(each => ({ ...each, ...holder })),
        } as never
      }
      reason={undefined}
      stacks={undefined}
      onEvent={nothing}
      before={null}
    />,
  );

const live = (name: string | null) =>
  textsOf(
    <Live
      live={
        {
          ...golden['memory/live'],
          rows: golden['memory/live'].rows.map(row => ({ ...row, name })),
        } as never
      }
      when="now"
      isPeak
      group="stack"
      groups={['stack']}
      onGroup={nothing}
      onPeak={nothing}
      onPick={nothing}
      onEvent={nothing}
    />,
  );

const file = { file: 0, name: 'x', kind: 'snapshot' as const, bytes: 1000, path: 'run/file' };
const instant = (changes: object) =>
  textsOf(
    <SnapshotInstant
      selectors={{ run: 'run' }}
      file={file}
      snapshot={golden['memory/snapshot'] as never}
      entry={3}
      onPick={nothing}
    />,
    { 'memory/instant': { ...golden['memory/instant'], ...changes } },
  );

const segments = (total_segments: number) =>
  textsOf(<SegmentMap selectors={{ run: 'run' }} file={file} device={0} />, {
    'memory/map': { ...golden['memory/map'], total_segments },
  });

const fit = (hasOthers: boolean) =>
  textsOf(<SnapshotFit selectors={{ run: 'run' }} base={null} hasOthers={hasOthers} />);

/** Draw what a snapshot can be compared with: none while the workers are unknown. */
const pair = (workers: object | undefined, ...runs: string[]) =>
  textsOf(<SnapshotPair selectors={{ run: 'run' }} device={0} path="run/file" />, {
    runs: { runs: ['run', ...runs].map(name => ({ name })) },
    ...(workers && { workers }),
  });
const other = {
  workers: [{ name: 'w', spans: [{ name: '1', label: '', file: 'run/other' }] }],
  memory_files: [{ kind: 'snapshot', path: 'run/other' }],
};

const compared = (bytes: number) =>
  textsOf(<SnapshotCompare selectors={{ run: 'run' }} base={{}} />, {
    'memory/compare': {
      ...golden['memory/compare'],
      sites: golden['memory/compare'].sites.map(site => ({ ...site, bytes })),
    },
  });

const unread = (error: Error | null) =>
  textsOf(<UnreadFile file={file} crumb="run" files={null} error={error} />);

tryClaims('views/memory', {
  'Still live at the end of the trace.': {
    falseIf: 'another block took its address',
    holds: blocks({ state: 'unreleased' }),
    other: blocks({ state: 'replaced' }),
  },
  'No release is recorded, but its address was allocated again.': {
    falseIf: 'it is still live',
    holds: blocks({ state: 'replaced' }),
    other: blocks({ state: 'unreleased' }),
  },
  'The file has no addresses, so releases can’t be matched with allocations.': {
    falseIf: 'it has',
    holds: blocks({ state: 'unknown' }),
    other: blocks({ state: 'unreleased' }),
  },
  'No block matches these filters. Remove one to see more.': {
    falseIf: 'no filter is set',
    holds: blocks({}, 'unreleased', []),
    other: blocks({}, '', []),
  },
  'No allocations were recorded on this device.': {
    falseIf: 'a filter hides them',
    holds: blocks({}, '', []),
    other: blocks({}, 'unreleased', []),
  },
  'Allocated before the trace started.': {
    falseIf: 'its allocation was recorded',
    holds: blocks({ state: 'older', allocated_ns: null }),
    other: blocks({ state: 'unreleased' }),
  },
  'Outside any module.': {
    falseIf: 'it was allocated before the trace, so its module is unknown',
    holds: blocks({ state: 'unreleased', module: null }),
    other: blocks({ state: 'older', allocated_ns: null, module: null }),
  },
  'No operator allocates or releases memory in this range. Select another one in the chart.': {
    falseIf: 'no range is selected',
    holds: byOperator(true),
    other: byOperator(false),
  },
  'No operator allocates or releases memory.': {
    falseIf: 'only a range was searched',
    holds: byOperator(false),
    other: byOperator(true),
  },
  '{} {} on average, never released': {
    falseIf: 'how much it grows is unknown',
    holds: growth({}),
    other: growth({ per_step_bytes: null }),
  },
  'No Python frame was recorded around these allocations.': {
    falseIf: 'no stacks were recorded at all, for which there is a reason',
    triedBy: 'tests/views/memory/test_build.py::test_unknown_growth_has_a_reason',
  },
  'no stack recorded': { falseIf: 'one was', holds: live(null), other: live('train.py(3): step') },
  'nothing recorded yet': {
    falseIf: 'memory is known at the instant',
    triedBy: 'src/views/memory/index.test.tsx: shows the peak, who holds it, and that it grows',
  },
  '{} of an exported timeline.': {
    falseIf: 'the file is a snapshot',
    triedBy: 'src/views/memory/index.test.tsx: opens an exported timeline',
  },
  'The largest {} of {}.': { falseIf: 'all are listed', holds: segments(9), other: segments(2) },
  'Incomplete: {}.': {
    falseIf: 'the file is complete',
    triedBy:
      'tests/views/memory/test_snapshot_history.py::test_of_a_truncated_file_only_what_its_history_allocates_is_in_use',
  },
  '{} of the peak unknown': {
    falseIf: 'the category of all of it is known',
    triedBy:
      'tests/views/memory/test_snapshot_history.py::test_categories_add_up_to_the_bytes_in_use_at_every_point',
  },
  '{} in {} there, {} in {} here; {} by their number, {} by their size.': {
    falseIf: 'both snapshots have as much',
    holds: compared(500),
    other: compared(0),
  },
  'One recording can’t show how memory grows. Choose one with another batch size under Compare.': {
    falseIf: 'there is none to choose',
    holds: fit(true),
    other: fit(false),
  },
  'One recording can’t show how memory grows. Record a snapshot with a second batch size and choose it under Compare.':
    { falseIf: 'there is one to choose', holds: fit(false), other: fit(true) },
  'Batch size {} needs {} to {}.': {
    falseIf: 'no size can be predicted',
    triedBy:
      'src/views/memory/files/snapshots.test.tsx: answers what will fit once both batch sizes are known',
  },
  '{} of it has no known category.': {
    falseIf: 'all of it has one',
    holds: instant({}),
    other: instant({ unknown_ratio: 0 }),
  },
  'All of it has a category.': {
    falseIf: 'some has none',
    holds: instant({ unknown_ratio: 0 }),
    other: instant({}),
  },
  '{} were allocated before the history; their sites aren’t recorded.': {
    falseIf: 'the history has all allocations',
    holds: instant({ older_bytes: 512 }),
    other: instant({}),
  },
  'This run has no other snapshot. Record a second one to see what changed.': {
    falseIf: 'it has one, or its files are not listed yet',
    holds: pair({ workers: [], memory_files: [] }),
    other: pair(undefined),
  },
  'That run has no snapshot.': {
    falseIf: 'it has one, or none was chosen',
    holds: async () => {
      await pair({ workers: [], memory_files: [] }, 'another')();
      await pick('Run', 'another');
      return (await screen.findByText(/^That run/)).textContent;
    },
    other: pair(other, 'another'),
  },
  'This file can’t be shown.': {
    falseIf: 'it is being read',
    holds: unread(new Error('damaged')),
    other: unread(null),
  },
});
