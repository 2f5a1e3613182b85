import { cleanup, configure } from '@testing-library/react';
import { afterEach } from 'vitest';

// The machine may be busy with anything else, so no test relies on being quick: this bound is for those that fail.
configure({ asyncUtilTimeout: 60_000 });

// What a test has drawn ends with it, and what React still has to do is done while there is a window.
afterEach(async () => {
  cleanup();
  // Of the event loop: what was scheduled by then has run after two.
  for (let turns = 0; turns < 2; turns++) {
    await new Promise(resolve => setTimeout(resolve));
  }
});
