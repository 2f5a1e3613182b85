// The track of a device's time by category: each pixel column is stacked, idle time below, work above.
import { causeTitle } from '../../base/causes';
import { formatDuration } from '../../base/format';
import { truncateText } from './labels';
import type { TrackRow } from './layout';
import type { Hit, Scene } from './scene';
import { lowerBound } from '../tiles/tile';
import type { Drawing } from './vector';

/** Narrowest part with a label, px. */
const MIN_LABEL_PX = 60;
/** Distance at which the pointer still hits a part, px. */
const REACH_PX = 2;

/** Yield the boxes of a track that overlap [from, to), clipped to their tiles. */
function* boxesOf(scene: Scene, track: number, from: number, to: number) {
  for (const cover of scene.blame) {
    const begin = Math.max(from, cover.begin);
    const end = Math.min(to, cover.end);
    const { start, duration } = cover.data;
    for (const lane of cover.data.lanes.get(track) ?? []) {
      let at = lowerBound(start, lane.first, lane.last, begin);
      if (at > lane.first && start[at - 1]! + duration[at - 1]! > begin) {
        at -= 1;
      }
      for (; at < lane.last && start[at]! < end; at++) {
        const left = Math.max(start[at]!, begin);
        const right = Math.min(start[at]! + duration[at]!, end);
        yield { data: cover.data, at, category: lane.depth, left, right };
      }
    }
  }
}

/** Return the share of each category in each pixel column: shares[column * categories + category], 0 to 1. */
export function columnShares(scene: Scene, track: number, categories: number): Float32Array {
  const { window, width } = scene;
  const columns = Math.ceil(width);
  const shares = new Float32Array(columns * categories);
  const scale = width / (window.end - window.begin);
  for (const { data, at, category, left, right } of boxesOf(scene, track, window.begin, window.end)) {
    const solid = data.duration[at]! > 0 ? Math.min(data.busy[at]! / data.duration[at]!, 1) : 1;
    const [from, to] = [(left - window.begin) * scale, (right - window.begin) * scale];
    for (let column = Math.floor(from); column < Math.min(to, columns); column++) {
      const part = Math.min(to, column + 1) - Math.max(from, column);
      shares[column * categories + category]! += part * solid;
    }
  }
  return shares;
}

/** Return the end of the run of columns that one category fills alone, or the next column. */
function endOfRun(shares: Float32Array, categories: number, column: number): number {
  const full = shares.subarray(column * categories, (column + 1) * categories).findIndex(isFull);
  if (full < 0) {
    return column + 1;
  }
  let at = column * categories + full;
  while (isFull(shares[at] ?? 0)) {
    at += categories;
  }
  return (at - full) / categories;
}

const isFull = (share: number): boolean => share > 0.999;

export function paintBlame(context: Drawing, scene: Scene, row: TrackRow, y: number): void {
  const { palette, window, width } = scene;
  const categories = palette.categories.length;
  const shares = columnShares(scene, row.track!.id, categories);
  const columns = shares.length / categories;
  const height = row.lane - 1;
  const floor = y + 3 + height;
  for (let column = 0; column < columns;) {
    const columnShare = shares.subarray(column * categories, (column + 1) * categories);
    const next = endOfRun(shares, categories, column);
    let top = floor;
    for (const category of palette.stacked) {
      // Times of a tile are rounded, so that the shares of a column may add up to more than all of it.
      const boxHeight = Math.min(columnShare[category]! * height, top - floor + height);
      if (boxHeight > 0) {
        context.fillStyle = palette.categories[category]!.fill;
        context.fillRect(column, top - boxHeight, next - column, boxHeight);
        top -= boxHeight;
      }
    }
    column = next;
  }
  if (row.folded) {
    return;
  }
  const scale = width / (window.end - window.begin);
  for (const { category, duration, left, right } of idleParts(scene, row.track!.id)) {
    const room = (right - left) * scale;
    if (room >= MIN_LABEL_PX) {
      const text = `${causeTitle(palette.idle[category]!)} ${formatDuration(duration)}`;
      context.fillStyle = palette.categories[category]!.ink;
      const x = (left - window.begin) * scale + 4;
      context.fillText(truncateText(context, text, room - 8), x, y + 3 + height / 2 + 0.5);
    }
  }
}

/** Return the visible idle intervals that are not merged with others, each once even if it spans tiles. */
function idleParts(scene: Scene, track: number) {
  const { palette, window } = scene;
  const parts = new Map<string, { category: number; duration: number; left: number; right: number }>();
  for (const { data, at, category, left, right } of boxesOf(scene, track, window.begin, window.end)) {
    if (data.count[at] !== 1 || !palette.idle[category]) {
      continue;
    }
    const key = `${category} ${data.event[at]} ${data.start[at]}`;
    const part = parts.get(key);
    if (part) {
      part.right = right;
    } else {
      parts.set(key, { category, duration: data.duration[at]!, left, right });
    }
  }
  return parts.values();
}

/** Return the category under a point, idle time before work, then the longest; null outside the steps. */
export function hitTestBlame(scene: Scene, row: TrackRow, x: number): Hit | null {
  const ns = (scene.window.end - scene.window.begin) / scene.width;
  const time = scene.window.begin + x * ns;
  let best: Hit | null = null;
  let bestRank = 0;
  const reach = REACH_PX * ns;
  for (const { data, at, category } of boxesOf(scene, row.track!.id, time - reach, time + reach)) {
    const [start, duration, busy] = [data.start[at]!, data.duration[at]!, data.busy[at]!];
    const inside = start <= time && time < start + duration && data.count[at] === 1;
    const rank = (inside ? 2 ** 60 : busy) * (scene.palette.idle[category] || inside ? 1 : 1e-9);
    if (best === null || rank > bestRank) {
      bestRank = rank;
      best = {
        event: data.event[at]!,
        count: data.count[at]!,
        start,
        duration,
        busy,
        name: data.name[at]!,
        color: data.color[at]!,
      };
    }
  }
  return best;
}
