import { tryClaims } from '../testing/claims';

const MISSING = {
  falseIf: 'the report has it',
  triedBy: 'src/api/embedded.test.ts: that are missing give an error with the command that opens all traces',
};
const RESTART = {
  falseIf: 'the server answers',
  triedBy: 'tests/e2e/test_restart.py::test_a_page_outlives_its_server',
};

tryClaims(
  'api',
  {
    'TensorBoard is not responding': RESTART,
    'Is it still running? The page reconnects by itself.': RESTART,
    '{} is not part of this report': MISSING,
    '`{}` opens all traces.': MISSING,
  },
  { 'A report can’t save files: it has no server.': 'an error of a button that reports don’t have' },
);
