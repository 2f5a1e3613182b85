import golden from '../../../../tests/golden/payloads/kernels.json';
import { tryClaims } from '../../testing/claims';
import { texts, textsOf } from '../../testing/view';
import { MemoryOperations } from './MemoryOperations';
import View from '.';

const page = texts(View, 'kernels', golden);
const [kernel] = golden.kernels.rows;
const launch = (changes: object, reasons: object = golden.kernels.reasons) =>
  page({ rows: [{ ...kernel, ...changes }], group_by: 'launch', reasons });

const copy = (changes: object) =>
  textsOf(
    <MemoryOperations
      rows={[
        {
          name: 'Memcpy HtoD',
          kind: 'memcpy',
          calls: 1,
          bytes: 4096,
          total_ns: 1000,
          mean_ns: 1000,
          max_ns: 1000,
          bandwidth: 4e9,
          event: 1,
          ...changes,
        },
      ]}
      onOpen={() => {}}
    />,
  );

tryClaims('views/kernels', {
  'The profiler didn’t record the bytes.': {
    falseIf: 'it did, and the copy took no time',
    holds: copy({ bytes: null, bandwidth: null }),
    other: copy({ total_ns: 0, bandwidth: null }),
  },
  'It took no time.': {
    falseIf: 'only its bytes are unknown',
    holds: copy({ total_ns: 0, bandwidth: null }),
    other: copy({ bytes: null, bandwidth: null }),
  },
  'not shown by the name': {
    falseIf: 'the names of all kernels show it',
    holds: page({ tensor_cores: { used_ns: 1, not_used_ns: 1, unknown_ns: 1_000_000 } }),
    other: page(),
  },
  'No kernel matches these filters.': {
    falseIf: 'no filter is set',
    holds: page({ rows: [] }, { params: { family: 'norm' } }),
    other: page({ rows: [] }),
  },
  'No kernels were recorded.': {
    falseIf: 'a filter hides them',
    holds: page({ rows: [] }),
    other: page({ rows: [] }, { params: { family: 'norm' } }),
  },
  'Not launched by a recorded operator.': {
    falseIf: 'an operator launched it',
    holds: launch({ operator: null }),
    other: launch({ operator: 'aten::mm' }),
  },
  'Its launches have different limiters, or the trace lacks the data.': {
    falseIf: 'all have the same',
    holds: launch({ limiter: null }, {}),
    other: launch({ limiter: 'registers' }, {}),
  },
});
