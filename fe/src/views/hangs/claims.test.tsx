import golden from '../../../../tests/golden/payloads/hangs.json';
import { tryClaims } from '../../testing/claims';
import { texts } from '../../testing/view';
import View from '.';

const page = texts(View, 'hangs', golden);
const { ranks, groups, verdict, calls, stacks } = golden.hangs;
const unread = ranks.map(rank => ({ ...rank, state: 'missing', role: 'missing' }));
const none = { calls: [], stacks: [] };
const many = Array.from({ length: 40 }, (_, rank) => ({ ...ranks[0]!, rank }));

tryClaims('views/hangs', {
  'no readable dump': {
    falseIf: 'the dump of each rank can be read',
    holds: page({ calls: [{ ...calls[0]!, waiting: [0], unseen: [1], missing: [] }] }),
    other: page({ calls: [{ ...calls[0]!, waiting: [0], unseen: [], missing: [] }] }),
  },
  'No dump can be read; the table of ranks says why.': {
    falseIf: 'one can',
    holds: page({ ...none, ranks: unread }),
    other: page(none),
  },
  'The dumps contain no collectives.': {
    falseIf: 'another group has some',
    holds: page({ ...none, groups: [{ ...groups[0]!, last_finished: null, first_pending: null }] }),
    other: page({ ...none, groups: [{ ...groups[0]!, last_finished: 7, first_pending: null }] }),
  },
  'No collective of this group is in the dumps.': {
    falseIf: 'no group has any',
    holds: page({ ...none, groups: [{ ...groups[0]!, last_finished: 7, first_pending: null }] }),
    other: page({ ...none, groups: [] }),
  },
  'This group has only sends and receives; the table below shows which rank is in which.': {
    falseIf: 'the ranks wait in a collective',
    holds: page({ ...none, verdict: { ...verdict, p2p_seq_id: 4 } }),
    other: page(none),
  },
  'ranks with the same calls share a row': {
    falseIf: 'each rank has its own',
    holds: page({ ranks: many, groups: [{ ...groups[0]!, ranks: many.map(rank => rank.rank) }] }),
    other: page(),
  },
  '· never called by {}': {
    falseIf: 'all called it',
    triedBy:
      'src/views/hangs/index.test.tsx: names the culprit and draws the call that it never made as absent',
  },
  'All frames are in libraries.': {
    falseIf: 'one is in the program',
    holds: page({
      stacks: [{ ...stacks[0]!, frames: [{ ...stacks[0]!.frames[0]!, library: true }] }],
    }),
    other: page({
      stacks: [{ ...stacks[0]!, frames: [{ ...stacks[0]!.frames[0]!, library: false }] }],
    }),
  },
  'Who waits for whom, root cause first.': {
    falseIf: 'no group is the root',
    holds: page({ groups: [{ ...groups[0]!, root: true }] }),
    other: page({ groups: [{ ...groups[0]!, root: false }] }),
  },
  'Who waits for whom.': {
    falseIf: 'the first is the root cause',
    holds: page({ groups: [{ ...groups[0]!, root: false }] }),
    other: page({ groups: [{ ...groups[0]!, root: true }] }),
  },
  'Ranks that differ come first: {}.': {
    falseIf: 'none is the culprit',
    holds: page(),
    other: page({ verdict: { ...verdict, culprit_ranks: [] } }),
  },
  'Ranks without a readable dump come first.': {
    falseIf: 'all dumps can be read',
    holds: page({ ranks: unread, verdict: { ...verdict, culprit_ranks: [] } }),
    other: page({ verdict: { ...verdict, culprit_ranks: [] } }),
  },
  'time of the dumps unknown': { falseIf: 'it is known', holds: page({ as_of_ns: null }), other: page() },
});
