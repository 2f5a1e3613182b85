import golden from '../../../../tests/golden/payloads/origins.json';
import { tryClaims } from '../../testing/claims';
import { texts } from '../../testing/view';
import View from '.';

const page = texts(View, 'origins', golden);
const [row] = golden.origins.rows;
const rows = (changes: object) => page({ rows: [{ ...row, ...changes }] });

tryClaims('views/origins', {
  'What is unknown, and why': {
    falseIf: 'nothing is unknown',
    holds: page({}),
    other: page({ reasons: [] }),
  },
  'Unknown for this kernel.': {
    falseIf: 'it is known',
    holds: rows({ operator: null }),
    other: rows({ operator: 'aten::mm', module: 'Net', line: 'a.py:3' }),
  },
});
