// The track of what a device's time goes to: each column is filled by category, idle time from below, work above it.
import { causeTitle } from '../../base/causes';
import { formatDuration } from '../../base/format';
import { fitted } from './labels';
import type { Row } from './layout';
import type { Hit, Scene } from './scene';
import { lowerBound } from '../tiles/tile';
import type { Drawing } from './vector';

const LABEL = 60;
const NEAR_PX = 2;

/** Boxes of a row that touch [from, to), each once, clipped to the tile that it is read from. */
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

/** Share of each pixel column by category: shares[column * categories + category], 0 to 1. */
export function sharesOf(scene: Scene, track: number, categories: number): Float32Array {
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

/** The column after those that one category fills like the first, or the next one. */
function endOf(shares: Float32Array, categories: number, column: number): number {
  const whole = shares.subarray(column * categories, (column + 1) * categories).findIndex(isWhole);
  if (whole < 0) {
    return column + 1;
  }
  let at = column * categories + whole;
  while (isWhole(shares[at] ?? 0)) {
    at += categories;
  }
  return (at - whole) / categories;
}

const isWhole = (share: number): boolean => share > 0.999;

export function paintBlame(context: Drawing, scene: Scene, row: Row, y: number): void {
  const { palette, window, width } = scene;
  const categories = palette.categories.length;
  const shares = sharesOf(scene, row.track!.id, categories);
  const columns = shares.length / categories;
  const height = row.lane - 1;
  const floor = y + 3 + height;
  for (let column = 0; column < columns;) {
    const own = shares.subarray(column * categories, (column + 1) * categories);
    const next = endOf(shares, categories, column);
    let top = floor;
    for (const category of palette.stacked) {
      const tall = Math.min(own[category]!, 1) * height;
      if (tall > 0) {
        context.fillStyle = palette.categories[category]!.fill;
        context.fillRect(column, top - tall, next - column, tall);
        top -= tall;
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
    if (room >= LABEL) {
      const text = `${causeTitle(palette.idle[category]!)} ${formatDuration(duration)}`;
      context.fillStyle = palette.categories[category]!.ink;
      const x = (left - window.begin) * scale + 4;
      context.fillText(fitted(context, text, room - 8), x, y + 3 + height / 2 + 0.5);
    }
  }
}

/** The parts of idle time in sight that share no box, each once, however many tiles it reaches across. */
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

/** What a device's time goes to under a point: idle time before work, most of it first; null outside of steps. */
export function hitBlame(scene: Scene, row: Row, x: number): Hit | null {
  const ns = (scene.window.end - scene.window.begin) / scene.width;
  const time = scene.window.begin + x * ns;
  let best: Hit | null = null;
  let most = 0;
  const reach = NEAR_PX * ns;
  for (const { data, at, category } of boxesOf(scene, row.track!.id, time - reach, time + reach)) {
    const [start, duration, busy] = [data.start[at]!, data.duration[at]!, data.busy[at]!];
    const inside = start <= time && time < start + duration && data.count[at] === 1;
    const rank = (inside ? 2 ** 60 : busy) * (scene.palette.idle[category] || inside ? 1 : 1e-9);
    if (best === null || rank > most) {
      most = rank;
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
