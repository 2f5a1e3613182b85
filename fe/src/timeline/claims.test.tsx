import { tryClaims } from '../testing/claims';

tryClaims('timeline', {
  'No steps recorded': {
    falseIf: 'a step is recorded',
    triedBy:
      'src/timeline/draw/overlay.test.ts: a step is named on the ruler, and a trace without steps gets no step',
  },
});
