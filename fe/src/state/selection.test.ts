import { act, renderHook } from '@testing-library/react';
import { StrictMode } from 'react';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { readState } from '../base/browser/host';
import { fromSelection, nextSelection, toSelection, useSelectionState } from './selection';

describe('selection', () => {
  const now = toSelection({ view: 'overview', run: 'a', worker: 'w', span: '2', step: '5' });

  it('is stored in the address and read from it', () => {
    expect(toSelection(fromSelection(now))).toEqual(now);
  });

  it('forgets worker and span with another run, parameters with another view', () => {
    expect(nextSelection(now, { run: 'b' })).toMatchObject({ run: 'b', worker: undefined, span: undefined });
    expect(nextSelection(now, { worker: 'v' })).toMatchObject({ run: 'a', worker: 'v', span: undefined });
    expect(nextSelection(now, { view: 'kernels' }).params).toEqual({});
  });
});

describe('the selection of the page', () => {
  const spy = (method: 'pushState' | 'replaceState') => vi.spyOn(history, method);
  let push: ReturnType<typeof spy>;
  let replace: ReturnType<typeof spy>;
  const open = () => renderHook(() => useSelectionState(), { wrapper: StrictMode }).result;

  beforeEach(() => {
    location.hash = '#pytorch_profiler&p.pytorch_profiler.run=a';
    push = spy('pushState');
    replace = spy('replaceState');
  });

  it('drops events, tracks and times of a trace when another is selected', () => {
    const now = { view: 'trace', run: 'a', span: '1', params: { event: '4', at: '0-9', color: 'family' } };
    expect(nextSelection(now, { span: '2' }).params).toEqual({ color: 'family' });
    expect(nextSelection(now, { span: '1' }).params).toEqual(now.params);
    expect(nextSelection(now, { span: '2', params: { event: '7' } }).params).toEqual({ event: '7' });
  });

  it('writes one entry into the history per change', () => {
    const page = open();
    act(() => page.current.select({ view: 'kernels' }));
    expect(push).toHaveBeenCalledTimes(1);
    expect(readState()).toEqual({ view: 'kernels', run: 'a' });
    act(() => page.current.select({ view: 'kernels' }));
    expect(push).toHaveBeenCalledTimes(1);
  });

  it('writes once even if the address cannot be changed', () => {
    const page = open();
    push.mockImplementationOnce(() => {}).mockImplementationOnce(() => {});
    act(() => page.current.select({ span: '1' }));
    act(() => page.current.select({ span: '2' }));
    expect(push).toHaveBeenCalledTimes(2);
  });

  it('restores the last parameters of a view of the same trace, unless a link sets them', () => {
    const page = open();
    act(() => page.current.select({ view: 'trace', params: { at: '1-2' } }));
    act(() => page.current.select({ params: { at: '3-4' } }, true));
    act(() => page.current.select({ view: 'kernels' }));
    expect(page.current.selection.params).toEqual({});
    act(() => page.current.select({ view: 'trace' }));
    expect(page.current.selection.params).toEqual({ at: '3-4' });
    act(() => page.current.select({ view: 'kernels' }));
    act(() => page.current.select({ view: 'trace', params: {} }));
    expect(page.current.selection.params).toEqual({});
    act(() => page.current.select({ view: 'trace', params: { at: '5-6' } }));
    act(() => page.current.select({ view: 'kernels', run: 'b' }));
    act(() => page.current.select({ view: 'trace' }));
    expect(page.current.selection.params).toEqual({}); // of another run
  });

  it('replaces the entry when a change is quiet', () => {
    const page = open();
    act(() => page.current.select({ params: { at: '1-2' } }, true));
    expect(push).not.toHaveBeenCalled();
    expect(replace).toHaveBeenCalledTimes(1);
    expect(page.current.selection.params).toEqual({ at: '1-2' });
  });

  it('applies two changes in a row one after the other', () => {
    const page = open();
    act(() => {
      page.current.select({ worker: 'w' });
      page.current.select({ span: '2' });
      expect(readState()).toEqual({ run: 'a', worker: 'w', span: '2', view: 'overview' }); // before anything is drawn
    });
    expect(page.current.selection).toMatchObject({ run: 'a', worker: 'w', span: '2' });
    expect(push).toHaveBeenCalledTimes(2);
  });

  it('follows the address', () => {
    const page = open();
    act(() => {
      location.hash = '#pytorch_profiler&p.pytorch_profiler.run=b';
      window.dispatchEvent(new Event('hashchange'));
    });
    expect(page.current.selection.run).toBe('b');
  });
});
