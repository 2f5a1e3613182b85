import { MantineProvider } from '@mantine/core';
import { act, renderHook } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/trace.json';
import type { TracePayload } from '../../api/types';
import { readState } from '../../base/browser/host';
import { SelectionContext, useSelectionState } from '../../state/selection';
import { useTimeline } from './useTimeline';

function Wrapper({ children }: { children: ReactNode }) {
  return (
    <MantineProvider>
      <SelectionContext.Provider value={useSelectionState()}>{children}</SelectionContext.Provider>
    </MantineProvider>
  );
}

it('keeps a window that came to rest in the same frame as a mark', () => {
  location.hash = '#pytorch_profiler&p.pytorch_profiler.view=trace';
  const payload = golden.trace as unknown as TracePayload;
  const { result } = renderHook(() => useTimeline(payload), { wrapper: Wrapper });
  const drawn = result.current;
  act(() => {
    drawn.change({ window: { begin: 5, end: 9 } }, true);
    drawn.change({ marks: [7] });
  });
  expect(readState()).toEqual({ view: 'trace', at: '5-9', marks: '7' });
});
