import { tryClaims } from '../../testing/claims';

tryClaims(
  'views/overlap',
  {
    'no step chosen': {
      falseIf: 'one is',
      triedBy:
        'src/views/overlap/index.test.tsx: draws the recorded metrics over the steps, and opens the iteration of the chosen step',
    },
  },
  {
    'Means per iteration. Double-click a rank to open its iteration with the most exposed communication.':
      'what the table shows, and what a click does',
  },
);
