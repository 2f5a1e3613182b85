// Slices found among the tiles that are loaded. No React, no canvas.
import type { Place } from './draw/overlay';
import type { Cover } from './tiles/store';
import { lowerBound, type Tile } from './tiles/tile';

/** The slice before or after one on its lane. */
export function neighbor(tiles: readonly Cover<Tile>[], place: Place, direction: -1 | 1): number | null {
  let best: { event: number; start: number } | null = null;
  for (const cover of tiles) {
    const { start, event, count } = cover.data;
    for (const lane of cover.data.lanes.get(place.track) ?? []) {
      if (lane.depth !== place.depth) {
        continue;
      }
      let at = lowerBound(start, lane.first, lane.last, direction > 0 ? place.start + 1 : place.start);
      at -= direction > 0 ? 0 : 1;
      const candidate = at >= lane.first && at < lane.last && count[at]! > 0 ? start[at]! : null;
      if (candidate !== null && (best === null || (candidate - best.start) * direction < 0)) {
        best = { event: event[at]!, start: candidate };
      }
    }
  }
  return best?.event ?? null;
}

/** The track and lane of an event, if it is on one of these tracks. */
export function locate(
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
