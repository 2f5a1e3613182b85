// Painting and hit testing of slices and counters in the visible rows; stateless.
import { ticks } from '../../base/ticks';
import { hitTestBlame, paintBlame } from './blame';
import { truncateText } from './labels';
import { laneBox, type TrackRow } from './layout';
import type { Hit, Scene } from './scene';
import type { Cover } from '../tiles/store';
import { lowerBound, type Lane, type Tile } from '../tiles/tile';
import type { Drawing } from './vector';

/** Narrowest box with a label, px. */
const MIN_LABEL_PX = 28;
/** Opacity of what is not highlighted. */
const FADED_OPACITY = 0.22;

/** Return a name without the `aten::` prefix that most names share. */
const labelText = (name: string): string => name.replace(/^aten::/, '');

export function paint(context: Drawing, scene: Scene): void {
  const { width, height, palette, layout, scroll } = scene;
  context.globalAlpha = 1;
  context.fillStyle = palette.surface;
  context.fillRect(0, 0, width, height);
  const grid = gridLines(scene);
  paintGrid(context, scene, grid);
  context.font = `11px ${palette.font}`;
  context.textBaseline = 'middle';
  for (const row of layout.rows) {
    const y = row.y - scroll;
    if (y > height || y + row.height < 0) {
      continue;
    }
    context.globalAlpha = 1;
    if (row.kind === 'group') {
      context.fillStyle = palette.background;
      context.fillRect(0, y, width, row.height);
    } else {
      context.fillStyle = palette.grid;
      context.fillRect(0, y + row.height - 1, width, 1);
      if (row.kind === 'slices') {
        paintSlices(context, scene, grid, row, y);
      } else if (row.kind === 'blame') {
        paintBlame(context, scene, row, y);
      } else {
        paintCounter(context, scene, row, y);
      }
    }
  }
  context.globalAlpha = 1;
}

/** Return the x positions of the grid lines, left to right. */
function gridLines({ window, origin, width }: Scene): number[] {
  const scale = width / (window.end - window.begin);
  return ticks(window, width, origin).map(({ time }) => Math.round((time - window.begin) * scale));
}

/** Paint the grid below everything else: a line through a name would look like a letter. */
function paintGrid(context: Drawing, scene: Scene, grid: readonly number[]): void {
  context.fillStyle = scene.palette.line;
  context.globalAlpha = 0.6;
  for (const x of grid) {
    context.fillRect(x, 0, 1, scene.height);
  }
}

function paintSlices(
  context: Drawing,
  scene: Scene,
  grid: readonly number[],
  row: TrackRow,
  y: number,
): void {
  const track = row.track!;
  for (const [i, cover] of scene.tiles.entries()) {
    const before = scene.tiles[i - 1];
    const leads = before === undefined || before.end < cover.begin;
    for (const lane of cover.data.lanes.get(track.id) ?? []) {
      // Deeper slices are nested in the drawn ones.
      if (lane.depth > (row.folded ? 0 : row.lanes)) {
        continue;
      }
      const box = laneBox(row, lane.depth);
      const top = y + box.top;
      if (top > scene.height || top + row.lane < 0) {
        continue;
      }
      paintLane(context, scene, grid, cover, leads, lane, top, box.height, track);
    }
  }
}

/**
 * Paint one lane of one tile. `grid` lines don't show through boxes. `leads`: no tile before this one is drawn, so
 * this one also paints the boxes that reach in from there.
 */
function paintLane(
  context: Drawing,
  scene: Scene,
  grid: readonly number[],
  cover: Cover<Tile>,
  leads: boolean,
  lane: Lane,
  top: number,
  height: number,
  track: NonNullable<TrackRow['track']>,
): void {
  const { start, duration, busy, count, color, name, event } = cover.data;
  const { window, width, palette, names, highlight } = scene;
  const { unit } = cover.data;
  const scale = width / (window.end - window.begin);
  // The tile in which a box begins paints all of it.
  const to = Math.min(window.end, cover.end);
  let at = lowerBound(start, lane.first, lane.last, cover.begin);
  const earliest = leads ? lane.first : at;
  while (at > earliest && start[at - 1]! + duration[at - 1]! > cover.begin) {
    at -= 1;
  }
  // Boxes that end before the window are skipped; the boxes of a lane end in the order of their starts.
  const seen = lowerBound(start, at, lane.last, window.begin);
  at = Math.max(at, Math.min(seen - 1, lane.last));
  let painted = -1;
  let line = 0;
  let fill = '';
  for (let i = at; i < lane.last && start[i]! < to; i++) {
    const left = Math.max((start[i]! - window.begin) * scale, 0);
    const right = Math.min((start[i]! + duration[i]! - window.begin) * scale, width);
    if (right < 0) {
      continue;
    }
    const x = Math.floor(left);
    const end = Math.max(Math.floor(right), x + 1);
    if (end <= painted) {
      continue; // within the pixel that was drawn last
    }
    const paint = palette.of(color[i]!);
    if (paint.fill !== fill) {
      fill = paint.fill;
      context.fillStyle = fill;
    }
    const many = count[i]! > 1;
    const share = many && duration[i]! > 0 ? busy[i]! / duration[i]! : 1;
    const faded =
      highlight !== null &&
      !highlight(track, event[i]!, start[i]! + unit, start[i]! + duration[i]! - unit, lane.depth);
    const gap = end - x > 3 && !many ? 1 : 0;
    const solid = (many ? 0.3 + 0.6 * share : 1) * (faded ? FADED_OPACITY : 1);
    for (; line < grid.length && grid[line]! < end - gap; line++) {
      if (grid[line]! >= x && solid < 1) {
        context.globalAlpha = 1;
        context.fillStyle = palette.surface;
        context.fillRect(grid[line]!, top, 1, height);
        context.fillStyle = fill;
      }
    }
    context.globalAlpha = solid;
    context.fillRect(x, top, end - x - gap, height);
    painted = end;
    if (!many && end - x >= MIN_LABEL_PX && height >= 12) {
      const text = names.get(name[i]!);
      const label = text === undefined ? '' : truncateText(context, labelText(text), end - x - 8);
      if (label) {
        context.fillStyle = paint.ink;
        context.globalAlpha = faded ? 0.5 : 1;
        context.fillText(label, x + 4, top + height / 2 + 0.5);
        context.fillStyle = fill;
      }
    }
  }
}

function paintCounter(context: Drawing, scene: Scene, row: TrackRow, y: number): void {
  const { window, width, palette, samples } = scene;
  const track = row.track!;
  const max = track.unit === 'ratio' ? 1 : Math.max(track.high ?? 0, 0);
  const min = track.unit === 'ratio' ? 0 : Math.min(track.low ?? 0, 0);
  if (!(max > min)) {
    return;
  }
  const scale = width / (window.end - window.begin);
  const floor = y + row.height - 4;
  const room = row.height - 8;
  const toY = (value: number) => floor - ((value - min) / (max - min)) * room;
  const color = palette.of(track.role === 'memory' ? 5 : 0).fill;
  for (const cover of samples) {
    const range = cover.data.series.get(track.id);
    if (!range) {
      continue;
    }
    const { start, mean, high, last } = cover.data;
    const to = Math.min(window.end, cover.end);
    const from = Math.max(window.begin, cover.begin);
    const firstSeen = lowerBound(start, range[0], range[1], from);
    const first = Math.max(firstSeen - 1, range[0]);
    context.fillStyle = color;
    for (let i = first; i < range[1] && start[i]! < to; i++) {
      const next = i + 1 < range[1] ? start[i + 1]! : cover.data.end;
      const left = (Math.max(start[i]!, from) - window.begin) * scale;
      const right = (Math.min(next, to) - window.begin) * scale;
      const wide = right - left > 2;
      const value = wide ? last[i]! : mean[i]!;
      const top = toY(value);
      context.globalAlpha = 0.3;
      context.fillRect(left, top, Math.max(right - left, 0.5), floor - top);
      context.globalAlpha = 0.95;
      context.fillRect(left, toY(wide ? value : high[i]!), Math.max(right - left, 1), 1);
    }
  }
}

/** Return the slice under a point, or null. */
export function hitTest(scene: Scene, row: TrackRow, x: number, y: number): Hit | null {
  if (row.kind === 'blame') {
    return hitTestBlame(scene, row, x);
  }
  if (row.kind !== 'slices') {
    return null;
  }
  const depth = row.folded ? 0 : Math.floor((y - (row.y - scene.scroll) - 3) / row.lane);
  const ns = (scene.window.end - scene.window.begin) / scene.width;
  const time = scene.window.begin + x * ns;
  let best: Hit | null = null;
  let nearest = 3 * ns;
  for (const cover of scene.tiles) {
    if (time < cover.begin - nearest || time >= cover.end + nearest) {
      continue;
    }
    const { start, duration, count, event, busy, name, color } = cover.data;
    for (const lane of cover.data.lanes.get(row.track!.id) ?? []) {
      if (lane.depth !== depth) {
        continue;
      }
      const upper = lowerBound(start, lane.first, lane.last, time + nearest);
      for (let i = upper - 1; i >= lane.first && i >= upper - 4; i--) {
        const away = time < start[i]! ? start[i]! - time : Math.max(0, time - (start[i]! + duration[i]!));
        if (away < nearest || (away === 0 && best === null)) {
          nearest = away;
          best = {
            event: event[i]!,
            count: count[i]!,
            start: start[i]!,
            duration: duration[i]!,
            busy: busy[i]!,
            name: name[i]!,
            color: color[i]!,
          };
        }
      }
    }
  }
  return best;
}
