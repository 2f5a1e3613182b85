import { expect, test } from 'vitest';
import type { Palette } from './colors';
import { paintOverlay, type OverlayScene } from './overlay';

const above: OverlayScene = {
  width: 600,
  height: 100,
  window: { begin: 0, end: 1000 },
  layout: { rows: [], height: 0 },
  scroll: 0,
  palette: { font: 'sans-serif' } as Palette,
  ticks: [],
  steps: [{ name: 'all', start_ns: 0, duration_ns: 1000, complete: true }],
  recorded: false,
  stepNoun: 'step',
  area: null,
  marks: [],
  selected: null,
  hovered: null,
  arrows: [],
  bands: [],
  cursor: null,
};

/** What is written. */
function written(scene: OverlayScene): string[] {
  const texts: string[] = [];
  const context = new Proxy({} as CanvasRenderingContext2D, {
    get: (_, name) =>
      name === 'measureText'
        ? (text: string) => ({ width: 6 * text.length })
        : name === 'fillText'
          ? (text: string) => texts.push(text)
          : () => undefined,
    set: () => true,
  });
  paintOverlay(context, scene);
  return texts;
}

test('a step is named on the ruler, and a trace without steps gets no step', () => {
  expect(written(above)).toEqual(['No steps recorded  1.00 µs']);
  const steps = [{ ...above.steps[0]!, name: '7' }];
  expect(written({ ...above, steps, recorded: true })).toEqual(['Step 7  1.00 µs']);
});

test('a number that has no room is left out, not cut into another one', () => {
  const ticks = [0, 500, 950].map(time => ({ time, label: `${time} ms` }));
  expect(written({ ...above, ticks, steps: [] })).toEqual(['0 ms', '500 ms']);
  const steps = [{ ...above.steps[0]!, name: '7', duration_ns: 100 }];
  expect(written({ ...above, steps, recorded: true })).toEqual(['Step 7']);
});
