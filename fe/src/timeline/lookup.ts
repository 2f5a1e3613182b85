// Find slices in the loaded tiles.
import type { Layout, TrackRow } from './draw/layout';
import type { SlicePlace } from './draw/overlay';
import type { Cover, Span } from './tiles/store';
import { lowerBound, type Tile } from './tiles/tile';

/** Where a key leads: along the lane, or to the enclosing or nested slice, else to the track above or below. */
export type Direction = 'before' | 'after' | 'out' | 'in';

interface VisibleTiles {
  tiles: readonly Cover<Tile>[];
  layout: Layout;
  window: Span;
  scroll: number;
}

/** Return the slice in a direction from another. */
export function sliceInDirection(
  visible: VisibleTiles,
  from: SlicePlace,
  direction: Direction,
): number | null {
  const { track, depth, start, duration } = from;
  if (direction === 'before' || direction === 'after') {
    return neighbor(visible.tiles, from, direction === 'after' ? 1 : -1);
  }
  if (direction === 'in') {
    const first = neighbor(
      visible.tiles,
      { ...from, depth: depth + 1, start: start - 1 },
      1,
      start + duration,
    );
    return first ?? sliceOnNextTrack(visible, from, 1);
  }
  return (
    (depth > 0 ? nearest(visible.tiles, track, depth - 1, start) : null) ??
    sliceOnNextTrack(visible, from, -1)
  );
}

/** Return the slice nearest to the middle of the window, on the first visible track that has any. */
export function visibleSlice({ tiles, layout, window, scroll }: VisibleTiles): number | null {
  const middle = (window.begin + window.end) / 2;
  return firstOf(
    tiles,
    layout.rows.filter(row => row.y + row.height > scroll),
    middle,
  );
}

function sliceOnNextTrack(
  { tiles, layout }: VisibleTiles,
  { track, start, duration }: SlicePlace,
  side: -1 | 1,
) {
  const at = layout.rows.findIndex(row => row.track?.id === track);
  const rows = side > 0 ? layout.rows.slice(at + 1) : layout.rows.slice(0, Math.max(at, 0)).reverse();
  return firstOf(tiles, rows, start + duration / 2);
}

function firstOf(tiles: readonly Cover<Tile>[], rows: readonly TrackRow[], time: number): number | null {
  for (const { kind, track } of rows) {
    const found = kind === 'slices' && track ? nearest(tiles, track.id, 0, time) : null;
    if (found !== null) {
      return found;
    }
  }
  return null;
}

/** Return the slice of a lane at an instant, or the nearest. */
function nearest(tiles: readonly Cover<Tile>[], track: number, depth: number, time: number): number | null {
  let best: { event: number; far: number } | null = null;
  for (const { data } of tiles) {
    const { start, duration, event, count } = data;
    for (const lane of (data.lanes.get(track) ?? []).filter(each => each.depth === depth)) {
      const after = lowerBound(start, lane.first, lane.last, time + 1);
      for (const at of [after - 1, after]) {
        if (at >= lane.first && at < lane.last && count[at]! > 0) {
          const far = Math.max(start[at]! - time, time - start[at]! - duration[at]!, 0);
          if (best === null || far < best.far) {
            best = { event: event[at]!, far };
          }
        }
      }
    }
  }
  return best?.event ?? null;
}

/** Return the previous or next slice on the lane, if it begins by `until`. */
function neighbor(
  tiles: readonly Cover<Tile>[],
  place: SlicePlace,
  direction: -1 | 1,
  until = Infinity,
): number | null {
  let best: { event: number; start: number } | null = null;
  for (const cover of tiles) {
    const { start, event, count } = cover.data;
    for (const lane of cover.data.lanes.get(place.track) ?? []) {
      if (lane.depth !== place.depth) {
        continue;
      }
      let at = lowerBound(start, lane.first, lane.last, direction > 0 ? place.start + 1 : place.start);
      at -= direction > 0 ? 0 : 1;
      const there = at >= lane.first && at < lane.last && count[at]! > 0 && start[at]! <= until;
      const candidate = there ? start[at]! : null;
      if (candidate !== null && (best === null || (candidate - best.start) * direction < 0)) {
        best = { event: event[at]!, start: candidate };
      }
    }
  }
  return best?.event ?? null;
}

/** Return the track and lane of an event, if it is on one of `tracks`. */
export function locateEvent(
  tiles: readonly Cover<Tile>[],
  event: number,
  start: number,
  tracks: readonly number[],
): { track: number; depth: number } | undefined {
  for (const { data } of tiles) {
    for (const track of tracks) {
      for (const lane of data.lanes.get(track) ?? []) {
        const at = lowerBound(data.start, lane.first, lane.last, start - data.unit);
        for (let i = at; i < Math.min(at + 3, lane.last); i++) {
          if (data.event[i] === event) {
            return { track, depth: lane.depth };
          }
        }
      }
    }
  }
  return undefined;
}
