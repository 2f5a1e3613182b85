import { cleanup, configure } from '@testing-library/react';
import { afterEach, beforeEach, vi } from 'vitest';
import { sessionValues } from '../base/browser/sessionValues';

// The machine may be busy, so this timeout only bounds tests that fail.
configure({ asyncUtilTimeout: 60_000 });

// A download would lead the window to its blob: that address gets longer with every change of its hash.
beforeEach(() => void vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(() => {}));

// Files share a window. Unmount what a test has drawn, let React finish its scheduled work, and leave the window
// as it was found.
afterEach(async () => {
  cleanup();
  // After two turns of the event loop, everything scheduled so far has run.
  for (let turns = 0; turns < 2; turns++) {
    await new Promise(resolve => setTimeout(resolve));
  }
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  localStorage.clear();
  sessionValues.clear();
  location.hash = '';
});
