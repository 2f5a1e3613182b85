import { tryClaims } from '../../testing/claims';

tryClaims(
  'views/modules',
  {},
  { 'Expand the longest call, the longest call in it, and so on': 'what a button does' },
);
