import golden from '../../../../tests/golden/payloads/serving.json';
import type { ServingPayload } from '../../api/types';
import { tryClaims } from '../../testing/claims';
import { textsOf } from '../../testing/view';
import { Cost } from './Cost';

const cost = (changes: object) =>
  textsOf(
    <Cost
      payload={
        {
          ...golden.serving,
          cost: { ...golden.serving.cost, one_batch: null, graph_sizes: [], ...changes },
        } as unknown as ServingPayload
      }
    />,
  );

tryClaims(
  'views/serving',
  {
    'A decode iteration with {} requests takes {}.': {
      falseIf: 'the batches differ',
      holds: cost({ one_batch: { requests: 4, duration_ns: 5000 } }),
      other: cost({}),
    },
    'The times rise in steps: batches are padded to {} requests, and each place of a padded batch costs as much as a request.':
      { falseIf: 'no batch is padded', holds: cost({ graph_sizes: [8, 16] }), other: cost({}) },
    'mean of the iterations that all ranks of an engine recorded': {
      falseIf: 'an iteration counts that one of them lacks',
      triedBy: 'src/views/serving/index.test.tsx: names the slowest rank',
    },
    'Kernels of decode iterations: {}.': {
      falseIf: 'no kernel ran in one',
      triedBy:
        'src/views/serving/index.test.tsx: shows rates, phases, costs, stalls, and why a figure is unknown',
    },
    'tokens; at most {}': {
      falseIf: 'an iteration had more',
      triedBy:
        'tests/views/serving/test_serving.py::test_the_payload_has_a_row_for_each_iteration_and_phases_add_up',
    },
    'mean; at most {}': {
      falseIf: 'more requests were in the queue',
      triedBy: 'src/views/serving/index.test.tsx: shows the times of requests where they were recorded',
    },
  },
  {
    'Iterations: arrow keys move between them, Shift+arrow selects several, Enter shows only those':
      'what keys do',
    'Host, not recorded': 'the name of a cause',
  },
);
