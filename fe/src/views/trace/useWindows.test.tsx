import { act, renderHook } from '@testing-library/react';
import { useState } from 'react';
import { expect, it, vi } from 'vitest';
import type { Controller } from '../../timeline/controller';
import type { Span } from '../../timeline/tiles/store';
import { useWindows } from './useWindows';

const ALL: Span = { begin: 0, end: 100 };

function timeline() {
  const showWindow = vi.fn();
  const controller = { showWindow } as unknown as Controller;
  const { result } = renderHook(() => {
    const [shown, setShown] = useState(ALL);
    return { shown, setShown, windows: useWindows(controller, shown, setShown) };
  });
  return { result, showWindow };
}

it('goes back through the windows in which the timeline rested', () => {
  const { result, showWindow } = timeline();
  act(() => result.current.windows.rested({ begin: 10, end: 20 }));
  act(() => result.current.windows.rested({ begin: 12, end: 14 }));
  act(() => result.current.windows.back());
  expect(result.current.shown).toEqual({ begin: 10, end: 20 });
  act(() => result.current.windows.rested({ begin: 10, end: 20 })); // where the way back has led
  act(() => result.current.windows.back());
  expect(result.current.shown).toEqual(ALL);
  expect(showWindow.mock.calls.map(([window]) => window as Span)).toEqual([{ begin: 10, end: 20 }, ALL]);
  act(() => result.current.windows.back());
  expect(showWindow).toHaveBeenCalledTimes(2);
});

it('moves the drawing when the address changes by itself, and only then', () => {
  const { result, showWindow } = timeline();
  act(() => result.current.windows.rested({ begin: 10, end: 20 }));
  expect(showWindow).not.toHaveBeenCalled();
  act(() => result.current.setShown({ begin: 40, end: 60 })); // the way back of the browser
  expect(showWindow.mock.calls).toEqual([[{ begin: 40, end: 60 }]]);
});
