import golden from '../../../../tests/golden/payloads/distributed.json';
import { tryClaims } from '../../testing/claims';
import { texts, textsOf } from '../../testing/view';
import type { DistributedPayload } from '../../api/types';
import { Problems } from './Problems';
import { FoundRank } from './scale/RankSpreads';
import View from '.';

const page = texts(View, 'distributed', golden);
const job = golden.distributed;
const [activity] = job.meanwhile;
const loading = [{ kind: 'loading', text: [{ text: '1 of 3 read' }] }];
const empty = { rows: [], total: 0, first: 0, reasons: {} };

const read = (read_count: number) =>
  textsOf(
    <Problems payload={{ ...job, problems: [], read_count } as unknown as DistributedPayload} wasLoading />,
  );
const found = (rows: object[]) =>
  textsOf(
    <FoundRank
      search="nobody"
      answer={{ ...golden['distributed/ranks'], rows, total: rows.length } as never}
      spreads={[]}
      onWorker={() => {}}
      onTimeline={() => {}}
      onAll={() => {}}
    />,
  );
/** Draw a job of so many ranks that its tables stay on the server, and a table of it. */
const large = (table: string, parts: object, params: Record<string, string> = {}) =>
  page(
    { rank_count: 5000, expected_count: 5000 },
    { params: { table, ...params }, parts: { ...golden, ...parts } },
  );
const collectives = (params: Record<string, string>, changes: object = {}) =>
  page(changes, {
    params: { table: 'collectives', ...params },
    parts: { ...golden, 'distributed/collectives': empty },
  });
const rate = (lower_bound: boolean) => page({ collectives: [{ ...job.collectives[0]!, lower_bound }] });

tryClaims('views/distributed', {
  'All {} have been read.': { falseIf: 'one can’t be read', holds: read(3), other: read(2) },
  '{} of {} have been read.': { falseIf: 'all have', holds: read(2), other: read(3) },
  'Less than the largest activity of the median {}': {
    falseIf: 'the time of the median rank is known',
    holds: page({ meanwhile: [{ ...activity, host: [{ ...activity!.host[0]!, median_ns: null }] }] }),
    other: page({ meanwhile: [{ ...activity, host: [{ ...activity!.host[0]!, median_ns: 5 }] }] }),
  },
  'sums over all their ranks and the entire recording': {
    falseIf: 'a rank or a part of the recording is left out',
    triedBy: 'tests/views/distributed/test_scale.py::test_the_page_of_a_large_job_is_bounded',
  },
  'a cell shows the worst of up to {}{}': {
    falseIf: 'each cell is one rank',
    holds: large('', {
      'distributed/map': {
        ...golden['distributed/map'],
        columns: golden['distributed/map'].columns.map(column => ({ ...column, last: 9, ranks: 10 })),
      },
    }),
    other: large('', {}),
  },
  'No rank, worker, or host matches “{}”.': {
    falseIf: 'one does',
    holds: found([]),
    other: found(golden['distributed/ranks'].rows),
  },
  'No communication was recorded.': {
    falseIf: 'traces are still to be read, or a search hides it',
    holds: page({ collectives: [] }),
    other: page({ collectives: [], problems: loading }),
  },
  'No {} matches “{}”.': {
    falseIf: 'nothing is searched for',
    holds: large('group', { 'distributed/groups': empty }, { q: 'nobody' }),
    other: large('group', { 'distributed/groups': empty }),
  },
  'No device work was recorded: the ranks ran on the CPU, or the profiler didn’t record the devices.': {
    falseIf: 'a search hides it',
    holds: page({ families: [] }, { params: { table: 'families' } }),
    other: page({}, { params: { table: 'families', q: 'nobody' } }),
  },
  'No collective matches these filters. Remove one to see more.': {
    falseIf: 'no filter is set',
    holds: collectives({ step: '1' }),
    other: collectives({}),
  },
  'No collective was recorded.': {
    falseIf: 'a filter hides it, or traces are still to be read',
    holds: collectives({}),
    other: collectives({}, { problems: loading }),
  },
  'At least: the time includes waiting for other ranks.': {
    falseIf: 'the ranks were compared',
    holds: rate(true),
    other: rate(false),
  },
  'No ranks were found.': {
    falseIf: 'a search hides them',
    holds: large('ranks', { 'distributed/ranks': empty }),
    other: large('ranks', { 'distributed/ranks': empty }, { q: 'nobody' }),
  },
  'Cost of all its ranks together': {
    falseIf: 'the server says only what its costliest rank costs',
    triedBy: 'src/views/distributed/select.test.ts: says of a node what the server says of all its ranks',
  },
  'all its ranks': {
    falseIf: 'the server says only what its costliest rank costs',
    triedBy: 'src/views/distributed/select.test.ts: says of a node what the server says of all its ranks',
  },
});
