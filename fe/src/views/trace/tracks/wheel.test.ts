import { expect, test } from 'vitest';
import { wheelOf } from './wheel';

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
