import golden from '../../../../tests/golden/payloads/roofline.json';
import { tryClaims } from '../../testing/claims';
import { texts, textsOf } from '../../testing/view';
import { HardwareCounters } from './HardwareCounters';
import { Peaks } from './Peaks';
import View from '.';

const page = texts(View, 'roofline', golden);
const [row] = golden.roofline.rows;
const rows = (changes: object) => page({ rows: [{ ...row, ...changes }] });
const NO_BYTES = { bytes: null, bytes_per_s: null, intensity: null };

const counted = (changes: object) =>
  textsOf(
    <HardwareCounters
      counters={
        {
          source: 'CUPTI',
          note: null,
          ranges: 1,
          left_out: 0,
          names: [],
          rows: [
            {
              event: 1,
              name: 'gemm',
              short_name: 'gemm',
              operator: null,
              outermost: null,
              calls: 1,
              flops: 1,
              bytes: 1,
              modeled_flops: 1,
              modeled_bytes: 1,
              reason: null,
              modeled_reason: null,
              values: [],
              ...changes,
            },
          ],
        } as never
      }
    />,
  );

const [device] = golden.roofline.devices;
const peaks = (changes: object) =>
  textsOf(
    <Peaks device={{ ...device!, ...changes } as never} note={null} given="" onGive={() => undefined} />,
  );

tryClaims('views/roofline', {
  'It was launched outside any operator.': {
    falseIf: 'an operator launched it',
    holds: counted({}),
    other: counted({ operator: 'aten::mm', outermost: 'aten::mm' }),
  },
  'This counter is missing for some of these kernels.': {
    falseIf: 'all have it',
    triedBy:
      'src/views/roofline/index.test.tsx: shows what was counted beside what is modeled, and why the rest is not known',
  },
  'no name is recorded': { falseIf: 'one is', holds: peaks({ recorded: null }), other: peaks({}) },
  'Dense, at the rated boost clock. Source: {}. {}': {
    falseIf: 'nobody says what the peaks are',
    holds: peaks({}),
    other: peaks({ source: null }),
  },
  'A second source confirms {}.': {
    falseIf: 'none does',
    holds: peaks({ checked: ['bf16'] }),
    other: peaks({ checked: [] }),
  },
  'No row has known memory traffic, so there is nothing to plot.': {
    falseIf: 'one has',
    holds: rows(NO_BYTES),
    other: rows({}),
  },
  'No known FLOPs placed by bandwidth': {
    falseIf: 'the FLOPs of each row are known',
    holds: rows({ flops: null, flops_per_s: null, intensity: null }),
    other: rows({}),
  },
  'It has no FLOPs.': {
    falseIf: 'there is another reason',
    holds: rows({ intensity: null, reason: null }),
    other: rows({ intensity: null, reason: 'no formula' }),
  },
  'No work matches these filters.': {
    falseIf: 'no filter is set',
    holds: page({ rows: [] }, { params: { step: '1' } }),
    other: page({ rows: [] }),
  },
  'No operator launched device work.': {
    falseIf: 'a filter hides it',
    holds: page({ rows: [] }),
    other: page({ rows: [] }, { params: { step: '1' } }),
  },
  '; {} wasn’t launched by a recorded operator': {
    falseIf: 'all was',
    holds: page({ unlinked_ns: 5000 }),
    other: page({}),
  },
  '{} with {} left out ·': {
    falseIf: 'all rows are listed',
    holds: page({ others: { rows: 3, device_ns: 5000 } }),
    other: page({}),
  },
  '{}at most {} saved if every row with a roofline reached it': {
    falseIf: 'more could be saved',
    says: /at most 5.00 µs saved if every row/,
    holds: rows({ saved_ns: 5000 }),
    other: rows({ saved_ns: 6000 }),
  },
});
