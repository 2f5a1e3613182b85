import { MantineProvider } from '@mantine/core';
import { act, renderHook } from '@testing-library/react';
import { type ReactNode, useState } from 'react';
import { expect, it, vi } from 'vitest';
import golden from '../../../../tests/golden/payloads/trace.json';
import type { TracePayload } from '../../api/types';
import { readState } from '../../base/browser/host';
import { SelectionContext, useSelectionState } from '../../state/selection';
import type { Controller } from '../../timeline/controller';
import type { Span } from '../../timeline/tiles/store';
import { useTimeline, useWindowHistory } from './useTimeline';

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
  const timeline = result.current;
  act(() => {
    timeline.change({ window: { begin: 5, end: 9 } }, true);
    timeline.change({ marks: [7] });
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

it('knows whether the whole trace is shown', () => {
  location.hash = '#pytorch_profiler&p.pytorch_profiler.view=trace';
  const payload = { ...(golden.trace as unknown as TracePayload), begin_ns: 0, end_ns: 10_000 };
  const opened = { ...payload, first_begin_ns: 0, first_end_ns: 10_000 };
  const { result } = renderHook(() => useTimeline(opened), { wrapper: Wrapper });
  expect(result.current.showsAll).toBe(true);
  act(() => result.current.change({ window: { begin: 5, end: 9 } }, true));
  expect(result.current.showsAll).toBe(false);
  const part = { ...payload, first_begin_ns: 0, first_end_ns: 5_000 };
  location.hash = '#pytorch_profiler&p.pytorch_profiler.view=trace';
  expect(renderHook(() => useTimeline(part), { wrapper: Wrapper }).result.current.showsAll).toBe(false);
});

const ALL: Span = { begin: 0, end: 100 };

function timeline() {
  const showWindow = vi.fn();
  const controller = { showWindow } as unknown as Controller;
  const { result } = renderHook(() => {
    const [shown, setShown] = useState(ALL);
    return { shown, setShown, windows: useWindowHistory(controller, shown, setShown) };
  });
  return { result, showWindow };
}

it('goes back through the windows in which the timeline rested', () => {
  const { result, showWindow } = timeline();
  act(() => result.current.windows.onRest({ begin: 10, end: 20 }));
  act(() => result.current.windows.onRest({ begin: 12, end: 14 }));
  act(() => result.current.windows.goBack());
  expect(result.current.shown).toEqual({ begin: 10, end: 20 });
  act(() => result.current.windows.onRest({ begin: 10, end: 20 })); // where the way back has led
  act(() => result.current.windows.goBack());
  expect(result.current.shown).toEqual(ALL);
  expect(showWindow.mock.calls.map(([window]) => window as Span)).toEqual([{ begin: 10, end: 20 }, ALL]);
  act(() => result.current.windows.goBack());
  expect(showWindow).toHaveBeenCalledTimes(2);
});

it('moves the drawing when the address changes by itself, and only then', () => {
  const { result, showWindow } = timeline();
  act(() => result.current.windows.onRest({ begin: 10, end: 20 }));
  expect(showWindow).not.toHaveBeenCalled();
  act(() => result.current.setShown({ begin: 40, end: 60 })); // the way back of the browser
  expect(showWindow.mock.calls).toEqual([[{ begin: 40, end: 60 }]]);
});
