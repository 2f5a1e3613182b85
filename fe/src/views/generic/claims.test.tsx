import { tryClaims } from '../../testing/claims';

tryClaims(
  'views/generic',
  {},
  {
    'This page is older than the server, so it shows the raw values in base units.':
      'said only where the page has no view of the name that the server lists',
  },
);
