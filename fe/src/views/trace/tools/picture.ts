// What is in sight of a timeline as a picture that needs nothing else.
import type { TracePayload } from '../../../api/types';
import { plainColor, type Chart } from '../../../base/browser/picture';
import { causeTitle } from '../../../base/causes';
import type { Controller } from '../../../timeline/controller';
import { fitted } from '../../../timeline/draw/labels';
import { labelOf } from '../../../timeline/draw/layout';
import { HEAD, paintAbove } from '../../../timeline/draw/overlay';
import { paint } from '../../../timeline/draw/paint';
import { Vector } from '../../../timeline/draw/vector';
import type { Meaning } from './meanings';

/** px of the names of tracks, left of the drawing. */
const NAMES = 190;
const INDENT = 8;
const SVG = 'http://www.w3.org/2000/svg';

/** The rows in sight with their names; the legend says what is seen of colors. Null before the first frame. */
export function pictureOfTracks(
  controller: Controller,
  payload: TracePayload,
  texts: readonly Meaning[],
  title: string,
): Chart | null {
  const { drawn } = controller;
  if (!drawn) {
    return null;
  }
  const { scene, above } = drawn;
  const { palette } = scene;
  const ruler = document.createElement('canvas').getContext('2d')!;
  const { width, height } = above;
  const slices = new Vector(ruler, { x: NAMES, y: HEAD, width, height: scene.height });
  paint(slices, scene);
  const over = new Vector(ruler, { x: NAMES, y: 0, width, height });
  paintAbove(over, above);
  const names = new Vector(ruler, { x: 0, y: HEAD, width: NAMES, height: scene.height });
  for (const row of scene.layout.rows) {
    const y = row.y - scene.scroll;
    if (y < scene.height && y + row.height > 0) {
      names.font = `${row.kind === 'group' ? '600 ' : ''}11px ${palette.font}`;
      names.fillStyle = row.kind === 'group' ? palette.text : palette.soft;
      const x = row.kind === 'group' ? 0 : INDENT;
      names.fillText(fitted(names, labelOf(row, payload), NAMES - x - 2 * INDENT), x, y + row.height / 2);
    }
  }
  const whole = document.createElementNS(SVG, 'g');
  whole.append(names.root, slices.root, over.root);
  const found = [
    ...texts.map(({ code, text }) => [text, plainColor(palette.of(code).fill)] as const),
    ...palette.categories.map(
      ({ fill }, code) => [causeTitle(payload.categories[code]!), plainColor(fill)] as const,
    ),
  ].filter(([, color]) => slices.fills.has(color));
  // Work has one color among the slices and among what a device's time goes to.
  const legend = found.filter(([, color], i) => found.findIndex(([, other]) => other === color) === i);
  return { title, width: NAMES + width, height, legend, svg: whole };
}
