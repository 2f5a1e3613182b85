import golden from '../../../../tests/golden/payloads/overview.json';
import { tryClaims } from '../../testing/claims';
import { textsOf } from '../../testing/view';
import { Advice } from './Advice';
import { Hardware } from './Hardware';
import { StepColumns } from './StepColumns';

const { average, steps } = golden.overview;
const [first] = golden.overview.recommendations;

const advice = (coming: 'replay' | 'ranks' | null, error?: string) =>
  textsOf(
    <Advice items={[first! as never]} none={[]} error={error} coming={coming} step={null} ranks={null} />,
  );

const hardware = (reason: object[] | undefined) => textsOf(<Hardware use={null} reason={reason as never} />);

const columns = (changes: object, step: object = {}) =>
  textsOf(
    <StepColumns
      overview={{ ...golden.overview, steps: steps.map(each => ({ ...each, ...step })), ...changes } as never}
      chosen={undefined}
      onChoose={() => {}}
    />,
  );

const ADDS_UP = {
  falseIf: 'a moment counts twice',
  triedBy: 'tests/corpus/test_laws.py::test_categories_sum_to_each_step',
};

tryClaims('views/overview', {
  'savings overlap, so they don’t add up': {
    falseIf: 'they could not be estimated',
    holds: advice(null),
    other: advice(null, 'failed'),
  },
  'Nothing else stands out': {
    falseIf: 'the savings are still estimated, or the ranks compared',
    holds: advice(null),
    other: advice('replay'),
  },
  'No other known fix would save {} or more.': {
    falseIf: 'the savings could not be estimated',
    holds: advice(null),
    other: advice(null, 'failed'),
  },
  'What other fixes would save is being estimated.': {
    falseIf: 'it is known',
    holds: advice('replay'),
    other: advice(null),
  },
  'The other ranks may show a straggler.': {
    falseIf: 'they are compared',
    holds: advice('ranks'),
    other: advice(null),
  },
  'What other fixes would save is unknown.': {
    falseIf: 'it was estimated',
    holds: advice(null, 'failed'),
    other: advice(null),
  },
  "{}. Doesn't apply if {} {}": {
    falseIf: 'the row is folded: the first one is open',
    holds: advice(null),
    other: textsOf(
      <Advice items={[first! as never]} none={[]} error={undefined} coming={null} step={null} ranks={null} />,
      {},
      { advice: 'another' },
    ),
  },
  'Unknown: {}.': {
    falseIf: 'it is still computed',
    holds: hardware([{ text: 'no shapes' }]),
    other: hardware(undefined),
  },
  'unknown per step': {
    falseIf: 'a step has a row of its own for it',
    triedBy:
      'src/views/overview/index.test.tsx: says what the other ranks tell of its communication once they are compared',
  },
  "The trace doesn't say.": {
    falseIf: 'there is a reason',
    triedBy:
      'src/views/overview/index.test.tsx: says of a device whose kernels or copies are missing no more than is known',
  },
  '{}, {}: each category counts only time not counted to its left': ADDS_UP,
  '{} each category counts only time not counted to its left': ADDS_UP,
  'each column is the longest of up to {} steps': {
    falseIf: 'each column is one step',
    holds: columns({ step_count: 7 }),
    other: columns({}),
  },
  ', incomplete: left out of the average': {
    falseIf: 'the step is complete',
    holds: columns({}, { complete: false }),
    other: columns({}),
  },
  ', far from the others: left out of the average': {
    falseIf: 'the average counts it',
    holds: columns({ average: { ...average, outliers: [steps[0]!.name] } }),
    other: columns({}),
  },
});
