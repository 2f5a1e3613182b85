import golden from '../../../../tests/golden/payloads/idle.json';
import type { IdlePayload } from '../../api/types';
import { tryClaims } from '../../testing/claims';
import { texts, textsOf } from '../../testing/view';
import { Bandwidth } from './Bandwidth';
import { Launches } from './Launches';
import { Queue } from './Queue';
import { Sequences } from './Sequences';
import { causeRows } from './select';
import View from '.';

const page = texts(View, 'idle', golden);
const [cause] = golden.idle.causes;

const launches = (changes: object) =>
  textsOf(<Launches />, { 'idle/launches': { ...golden['idle/launches'], ...changes } });
const [call] = golden['idle/launches'].rows;

const queue = (...rows: object[]) =>
  textsOf(<Queue />, {
    'idle/queue': { ...golden['idle/queue'], rows: rows.map(row => ({ ...stream, ...row })) },
  });
const [stream] = golden['idle/queue'].rows;

const copies = (...rows: object[]) =>
  textsOf(<Bandwidth />, {
    'idle/bandwidth': {
      ...golden['idle/bandwidth'],
      rows: rows.map(row => ({
        direction: 'host to device',
        memory: 'pinned',
        copies: 2,
        bytes: 4096,
        time_ns: 1000,
        bandwidth: 4e9,
        curve: [4096],
        ...row,
      })),
    },
  });

const sequences = (changes: object = {}) =>
  textsOf(<Sequences />, { 'idle/sequences': { ...golden['idle/sequences'], ...changes } });

const subjects = (by: IdlePayload['by'], subject: string | null, name: string) => () =>
  causeRows({
    ...(golden.idle as unknown as IdlePayload),
    by,
    causes: [{ ...cause!, cause: name, subject, short_subject: subject }],
  })
    .flatMap(row => row.below!)
    .map(row => row.title)
    .join('\n');

const job = golden['idle/ranks'];
const compared = (uncompared_ns: number) => {
  const payload = { ...job, communication: { ...job.communication, uncompared_ns } };
  return page(payload, { parts: { 'idle/ranks': payload } });
};

tryClaims(
  'views/idle',
  {
    'No copies were recorded here.': { falseIf: 'one was', holds: copies(), other: copies({}) },
    '; their sizes were not recorded': {
      falseIf: 'they were',
      holds: copies({ bytes: null, bandwidth: null }),
      other: copies({}),
    },
    'Pageable host memory: the call stages the data.': {
      falseIf: 'the memory is pinned, or its kind is unknown',
      holds: copies({ memory: 'pageable' }),
      other: copies({ memory: null }),
    },
    'No gaps: the {} is never idle here.': {
      falseIf: 'there is a gap, or no step is counted',
      holds: page({ causes: [], sums: [], gaps: 0, idle_ns: 0 }),
      other: page({ causes: [], sums: [], gaps: 0, idle_ns: 0, counted: 0, duration_ns: 0 }),
    },
    'No time is counted here, so gaps are unknown.': {
      falseIf: 'a step is counted',
      holds: page({ causes: [], sums: [], gaps: 0, idle_ns: 0, counted: 0, duration_ns: 0 }),
      other: page({ causes: [], sums: [], gaps: 0, idle_ns: 0 }),
    },
    '{}; the causes sum to {} of idle time{}': {
      falseIf: 'the sum of the causes is another time',
      triedBy: 'src/views/idle/index.test.tsx: sums the rows of a cause per step',
    },
    'This row covers several subjects.': {
      falseIf: 'it has one',
      holds: page({ causes: [{ ...cause, others: 3, median_ns: null }] }, { params: { columns: '' } }),
      other: page({ causes: [cause] }),
    },
    'Saves up to': {
      falseIf: 'a gain is less than what its cause can save',
      triedBy: 'tests/views/idle/test_build.py::test_the_gain_of_a_cause_is_that_of_all_its_rows_together',
    },
    'Slow: over {}. Delayed: work that starts more than {} after its call. {}': {
      falseIf: 'no call was recorded of which that could be said',
      holds: launches({}),
      other: launches({ rows: [], unlinked: 5 }),
    },
    "The launches of this device work weren't recorded, so their calls and delays are unknown.": {
      falseIf: 'one was recorded, or there is no device work',
      holds: launches({ rows: [], unlinked: 5 }),
      other: launches({ rows: [], unlinked: 0 }),
    },
    'No device work was launched here.': {
      falseIf: 'work ran whose launch was not recorded',
      holds: launches({ rows: [], unlinked: 0 }),
      other: launches({ rows: [], unlinked: 5 }),
    },
    '{} of the launch calls take longer than the work they launch.': {
      falseIf: 'another share does',
      says: /\n50% of the launch calls take longer/,
      holds: launches({ rows: [{ ...call, calls: 4, short: 2 }] }),
      other: launches({ rows: [{ ...call, calls: 4, short: 1 }] }),
    },
    'No call waited for a full queue.': {
      falseIf: 'one waited, or no call was recorded',
      holds: launches({}),
      other: launches({ rows: [], unlinked: 5 }),
    },
    '{} waited for a full queue, {} longer than a typical launch.': {
      falseIf: 'none waited',
      holds: launches({ blocked_calls: 2, blocked_ns: 5000 }),
      other: launches({}),
    },
    'work launched but not started': {
      falseIf: 'the queue counts work that runs',
      triedBy:
        'tests/analyses/launches/test_queue.py::test_a_launch_adds_a_start_removes_and_calls_come_first',
    },
    'No launches were recorded here, so there is no queue length to show.': {
      falseIf: 'one was',
      holds: queue(),
      other: queue({}),
    },
    'Up to {} {} {}.': {
      falseIf: 'the queue was longer',
      says: /\nUp to 7 launches/,
      holds: queue({ longest: 7 }),
      other: queue({ longest: 8 }),
    },
    'Queue length of stream {}, up to {}': {
      falseIf: 'the queue was longer',
      says: /\nQueue length of stream 7, up to 7\n/,
      holds: queue({ longest: 7 }),
      other: queue({ longest: 8 }),
    },
    'work that repeats in the same order': {
      falseIf: 'two runs differ',
      triedBy: 'tests/analyses/launches/test_sequences.py::test_repeats_are_all_there_are_of_their_length',
    },
    'Graph capture saves up to': {
      falseIf: 'capturing saves more than the time between the launches',
      triedBy:
        'tests/analyses/launches/test_sequences.py::test_capturing_gains_the_host_time_between_the_launches_of_a_run',
    },
    'No sequence of different items repeats at least three times, and twice per step.': {
      falseIf: 'one does',
      holds: sequences({ rows: [] }),
      other: sequences(),
    },
    'Exposed communication, not compared': {
      falseIf: 'all of it was compared with other ranks',
      holds: compared(6_000_000),
      other: compared(0),
    },
    'no source line recorded': {
      falseIf: 'one was',
      holds: subjects('frame', null, 'operator'),
      other: subjects('frame', 'train.py:3', 'operator'),
    },
  },
  {},
);
