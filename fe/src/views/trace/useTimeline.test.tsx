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

it('says the time of day where the clock is known to be the wall, else the time since the start', () => {
  location.hash = '#pytorch_profiler&p.pytorch_profiler.view=trace&p.pytorch_profiler.clock=wall';
  const payload = golden.trace as unknown as TracePayload;
  const wall = Date.UTC(2026, 10, 22, 3, 4, 5) * 1e6;
  const time = (known: number | null) =>
    renderHook(() => useTimeline({ ...payload, wall_ns: known }), { wrapper: Wrapper }).result.current.time(
      1000,
    );
  expect(time(wall)).toBe('03:04:05.000001');
  expect(time(null)).not.toContain(':');
});
