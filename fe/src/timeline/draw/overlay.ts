// The overlay: ruler, selected time range, marks, the selected slice, and its arrows.
import { formatDuration } from '../../base/format';
import { capitalize } from '../../base/text';
import { laneBox, type Layout } from './layout';
import type { Palette } from './colors';
import type { Span } from '../tiles/store';
import { truncateText, textWidth } from './labels';
import type { Tick } from '../../base/ticks';
import type { Drawing } from './vector';

export interface SlicePlace {
  track: number;
  depth: number;
  start: number;
  duration: number;
}

export interface Arrow {
  from: SlicePlace;
  to: SlicePlace;
  label: string;
  strong: boolean;
}

/** One operation on several tracks. */
export interface OperationBand {
  places: readonly SlicePlace[];
  strong: boolean;
}

interface StepSpan {
  name: string;
  start_ns: number;
  duration_ns: number;
  complete: boolean;
}

export interface OverlayScene {
  width: number;
  height: number;
  window: Span;
  layout: Layout;
  scroll: number;
  palette: Palette;
  ticks: Tick[];
  steps: readonly StepSpan[];
  /** Whether the steps were recorded; without any, the whole trace is the only one. */
  recorded: boolean;
  /** "step", or "iteration" of an inference engine. */
  stepNoun: string;
  area: Span | null;
  marks: readonly number[];
  selected: SlicePlace | null;
  hovered: SlicePlace | null;
  arrows: readonly Arrow[];
  bands: readonly OperationBand[];
  cursor: number | null;
}

/** Heights of the ruler and of the steps below it, px. */
const RULER_PX = 24;
const STEPS_PX = 22;
export const HEADER_PX = RULER_PX + STEPS_PX;

export function paintOverlay(context: Drawing, above: OverlayScene): void {
  const { width, height, window, palette } = above;
  const scale = width / (window.end - window.begin);
  const toX = (time: number) => (time - window.begin) * scale;
  context.clearRect(0, 0, width, height);
  context.font = `11px ${palette.font}`;
  context.textBaseline = 'middle';
  context.globalAlpha = 1;

  context.save();
  context.beginPath();
  context.rect(0, HEADER_PX, width, height - HEADER_PX);
  context.clip();
  for (const band of above.bands) {
    paintBand(context, above, band);
  }
  for (const place of [above.hovered, above.selected]) {
    const box = place && sliceBox(above, place);
    if (box) {
      context.strokeStyle = place === above.selected ? palette.text : palette.soft;
      context.lineWidth = place === above.selected ? 2 : 1;
      context.strokeRect(box.x - 0.5, box.y - 0.5, Math.max(box.width, 3), box.height);
    }
  }
  for (const arrow of above.arrows) {
    paintArrow(context, above, arrow);
  }
  context.restore();

  paintRuler(context, above, toX);
  paintArea(context, above, toX);
  context.fillStyle = palette.accent;
  above.marks.forEach((mark, i) => {
    const x = Math.round(toX(mark));
    context.fillRect(x, RULER_PX - 8, 1, height);
    context.beginPath();
    context.moveTo(x, RULER_PX - 10);
    context.lineTo(x + 9, RULER_PX - 6);
    context.lineTo(x, RULER_PX - 2);
    context.fill();
    const before = above.marks[i - 1];
    if (before !== undefined) {
      const text = formatDuration(Math.abs(mark - before));
      context.fillText(text, x + 12, RULER_PX - 6);
    }
  });
  if (above.cursor !== null) {
    context.globalAlpha = 0.5;
    context.fillStyle = palette.soft;
    context.fillRect(Math.round(above.cursor), 0, 1, height);
  }
  context.globalAlpha = 1;
}

/** Connect each box of an operation with the next below: starts on the left, the common end on the right. */
function paintBand(context: Drawing, above: OverlayScene, { places, strong }: OperationBand): void {
  const boxes = places.flatMap(place => sliceBox(above, place) ?? []).sort((a, b) => a.y - b.y);
  context.fillStyle = above.palette.joined;
  context.strokeStyle = above.palette.joined;
  context.lineWidth = strong ? 1.5 : 1;
  for (let i = 1; i < boxes.length; i++) {
    const [upper, lower] = [boxes[i - 1]!, boxes[i]!];
    const [from, to] = [upper.y + upper.height, lower.y];
    context.beginPath();
    context.moveTo(upper.x, from);
    context.lineTo(lower.x, to);
    context.lineTo(lower.x + lower.width, to);
    context.lineTo(upper.x + upper.width, from);
    context.closePath();
    context.globalAlpha = strong ? 0.3 : 0.1;
    context.fill();
    context.globalAlpha = strong ? 0.9 : 0.35;
    context.stroke();
  }
  context.globalAlpha = 1;
}

function paintRuler(context: Drawing, above: OverlayScene, toX: (time: number) => number): void {
  const { width, window, palette } = above;
  context.fillStyle = palette.surface;
  context.fillRect(0, 0, width, HEADER_PX);
  context.fillStyle = palette.line;
  context.fillRect(0, RULER_PX, width, 1);
  context.fillRect(0, HEADER_PX - 1, width, 1);
  for (const tick of above.ticks) {
    const x = Math.round(toX(tick.time));
    context.fillStyle = palette.line;
    context.fillRect(x, 6, 1, RULER_PX - 6);
    context.fillStyle = palette.soft;
    // A clipped number would read as another number.
    if (x + 4 + textWidth(context, tick.label) <= width) {
      context.fillText(tick.label, x + 4, 12);
    }
  }
  let painted = -2;
  for (const step of above.steps) {
    if (step.start_ns > window.end || step.start_ns + step.duration_ns < window.begin) {
      continue;
    }
    const left = Math.max(toX(step.start_ns), 0);
    const right = Math.min(toX(step.start_ns + step.duration_ns), width);
    if (right < painted + 1) {
      continue;
    }
    painted = right;
    context.globalAlpha = step.complete ? 1 : 0.5;
    context.fillStyle = palette.grid;
    context.fillRect(left, RULER_PX + 2, Math.max(right - left - 1, 1), STEPS_PX - 5);
    const name = above.recorded ? `${capitalize(above.stepNoun)} ${step.name}` : 'No steps recorded';
    const full = `${name}  ${formatDuration(step.duration_ns)}`;
    const room = right - left - 10;
    const label = textWidth(context, full) <= room ? full : truncateText(context, name, room);
    if (label) {
      context.fillStyle = palette.text;
      context.fillText(label, left + 6, RULER_PX + STEPS_PX / 2);
    }
    context.globalAlpha = 1;
  }
}

function paintArea(context: Drawing, above: OverlayScene, toX: (time: number) => number): void {
  const { area, height, palette, width } = above;
  if (!area) {
    return;
  }
  const [left, right] = [toX(area.begin), toX(area.end)];
  context.fillStyle = palette.accentSoft;
  context.fillRect(left, 0, right - left, height);
  context.fillStyle = palette.accent;
  context.fillRect(Math.round(left), 0, 1, height);
  context.fillRect(Math.round(right), 0, 1, height);
  const text = formatDuration(area.end - area.begin);
  const size = context.measureText(text).width + 14;
  const middle = Math.min(Math.max((left + right) / 2, size / 2), width - size / 2);
  context.beginPath();
  context.roundRect(middle - size / 2, 3, size, 17, 3);
  context.fill();
  context.fillStyle = palette.surface;
  context.fillText(text, middle - size / 2 + 7, 12);
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Return where a slice is drawn, px; null if its track is not visible. */
function sliceBox(above: OverlayScene, place: SlicePlace): Box | null {
  const row = above.layout.rows.find(
    candidate => candidate.track?.id === place.track && candidate.kind !== 'counter',
  );
  if (!row) {
    return null;
  }
  const scale = above.width / (above.window.end - above.window.begin);
  const { top, height } = laneBox(row, place.depth);
  return {
    x: (place.start - above.window.begin) * scale,
    width: place.duration * scale,
    y: HEADER_PX + row.y - above.scroll + top,
    height,
  };
}

function paintArrow(context: Drawing, above: OverlayScene, arrow: Arrow): void {
  const from = sliceBox(above, arrow.from);
  const to = sliceBox(above, arrow.to);
  if (!from || !to) {
    return;
  }
  const { palette, width } = above;
  const [x0, y0] = [from.x + Math.min(from.width, 4) / 2, from.y + from.height / 2];
  const [x1, y1] = [to.x, to.y + to.height / 2];
  if (Math.max(x0, x1) < 0 || Math.min(x0, x1) > width) {
    return;
  }
  context.strokeStyle = arrow.strong ? palette.text : palette.dim;
  context.globalAlpha = arrow.strong ? 1 : 0.5;
  context.lineWidth = arrow.strong ? 1.5 : 1;
  const bend = Math.max(Math.abs(x1 - x0) / 2, 12);
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 3, y1);
  context.stroke();
  context.fillStyle = context.strokeStyle;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 6, y1 - 3.5);
  context.lineTo(x1 - 6, y1 + 3.5);
  context.fill();
  context.beginPath();
  context.arc(x0, y0, 3, 0, 2 * Math.PI);
  context.fill();
  if (arrow.strong && arrow.label) {
    const size = context.measureText(arrow.label).width + 12;
    const x = Math.min(Math.max(x1 - size / 2, 2), width - size - 2);
    context.beginPath();
    context.roundRect(x, y1 - 30, size, 17, 3);
    context.fill();
    context.fillStyle = palette.surface;
    context.fillText(arrow.label, x + 6, y1 - 21);
  }
  context.globalAlpha = 1;
}
