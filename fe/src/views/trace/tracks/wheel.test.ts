import { expect, test } from 'vitest';
import { onPinch, wheelOf } from './wheel';

const turn = { deltaX: 0, deltaY: 0, deltaMode: 0, ctrlKey: false, metaKey: false, shiftKey: false };

test('the plain wheel scrolls, whatever there is to scroll', () => {
  expect(wheelOf({ ...turn, deltaY: 120 }, 600)).toEqual({ does: 'scroll' });
  expect(wheelOf({ ...turn, deltaY: -3, deltaX: 2 }, 600)).toEqual({ does: 'scroll' });
});

test('Ctrl, Cmd and a pinch zoom: in when turned away, a notch no more than a little', () => {
  for (const key of ['ctrlKey', 'metaKey']) {
    expect(wheelOf({ ...turn, [key]: true, deltaY: -10 }, 600)).toEqual({
      does: 'zoom',
      factor: Math.exp(-0.1),
    });
    expect(wheelOf({ ...turn, [key]: true, deltaY: 120 }, 600)).toEqual({
      does: 'zoom',
      factor: Math.exp(0.5),
    });
  }
  const lines = wheelOf({ ...turn, ctrlKey: true, deltaY: -1, deltaMode: 1 }, 600);
  expect(lines).toEqual({ does: 'zoom', factor: Math.exp(-0.16) });
});

test('Shift and a turn to the side pan, in pixels', () => {
  expect(wheelOf({ ...turn, shiftKey: true, deltaY: 40 }, 600)).toEqual({ does: 'pan', pixels: 40 });
  // Some browsers turn it to the side themselves.
  expect(wheelOf({ ...turn, shiftKey: true, deltaX: 40 }, 600)).toEqual({ does: 'pan', pixels: 40 });
  expect(wheelOf({ ...turn, deltaX: -50, deltaY: 10 }, 600)).toEqual({ does: 'pan', pixels: -50 });
  expect(wheelOf({ ...turn, shiftKey: true, deltaY: 1, deltaMode: 2 }, 600)).toEqual({
    does: 'pan',
    pixels: 600,
  });
});

const gesture = (name: string, scale: number, clientX = 0) =>
  Object.assign(new Event(name, { cancelable: true }), { scale, clientX });

test('the pinch of Safari zooms at the pointer by what it grew since it was last told', () => {
  const node = document.createElement('div');
  const zooms: [number, number][] = [];
  const end = onPinch(node, (factor, x) => zooms.push([factor, x]));
  for (const event of [
    gesture('gesturestart', 1, 300),
    gesture('gesturechange', 2, 300),
    gesture('gesturechange', 8, 310),
    gesture('gesturechange', 0, 310),
    gesture('gestureend', 8, 310),
    // The next one counts from its own start.
    gesture('gesturestart', 1, 40),
    gesture('gesturechange', 0.5, 40),
  ]) {
    node.dispatchEvent(event);
    expect(event.defaultPrevented).toBe(true);
  }
  expect(zooms).toEqual([
    [1 / 2, 300],
    [1 / 4, 310],
    [2, 40],
  ]);
  end();
  node.dispatchEvent(gesture('gesturechange', 4));
  expect(zooms).toHaveLength(3);
});
