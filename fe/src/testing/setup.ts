import { cleanup, configure } from '@testing-library/react';
import { afterEach } from 'vitest';

// The machine may be busy, so this timeout only bounds tests that fail.
configure({ asyncUtilTimeout: 60_000 });

// Unmount what a test has drawn, and let React finish its scheduled work while there is a window.
afterEach(async () => {
  cleanup();
  // After two turns of the event loop, everything scheduled so far has run.
  for (let turns = 0; turns < 2; turns++) {
    await new Promise(resolve => setTimeout(resolve));
  }
});
