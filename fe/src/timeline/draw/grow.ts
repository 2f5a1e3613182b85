// Use the room below the tracks: first for lanes that were cut off, then for taller ones.
import { STRIP_PX, type Layout, type TrackRow } from './layout';

/** Heights of lanes that grow in turns, as multiples of the smallest: what one reads first, then all, curves most. */
const READABLE = 2;
const TALL = 3;
const CURVE = 12;

/** Return whether a track is read first: a device's work and idle time, and the threads that are blamed for it. */
const isRead = ({ kind, track }: TrackRow) =>
  kind === 'blame' || ['main', 'backward', 'compute', 'communication'].includes(track?.role ?? '');

const isCurve = ({ kind }: TrackRow) => kind === 'counter';

const grows = ({ kind, folded }: TrackRow) => kind !== 'group' && !folded;

/**
 * Return the layout with rows that fill `room` px as far as they may. Groups and folded tracks keep their height.
 * The same layout if it is as high as the room already.
 */
export function growLayout(layout: Layout, room: number): Layout {
  let free = room - layout.height;
  if (free <= 0) {
    return layout;
  }
  const rows = layout.rows.map(row => ({ ...row }));
  const growing = rows.filter(grows);
  for (const row of [...growing.filter(isRead), ...growing]) {
    const needed = row.more * row.lane - STRIP_PX;
    if (row.more > 0 && needed <= free) {
      free -= needed;
      Object.assign(row, {
        lanes: row.lanes + row.more,
        more: 0,
        height: row.height + needed,
        unfolds: false,
      });
    }
  }
  const smallest = new Map(growing.map(row => [row.key, row.lane]));
  const turns: [readonly TrackRow[], number][] = [
    [growing.filter(isRead), READABLE],
    [growing, READABLE],
    [growing.filter(isCurve), TALL],
    [growing, TALL],
    [growing.filter(isCurve), CURVE],
  ];
  for (const [some, most] of turns) {
    free -= raiseLanes(some, row => most * smallest.get(row.key)!, free);
  }
  let y = 0;
  for (const row of rows) {
    row.y = y;
    y += row.height;
  }
  return { rows, height: y };
}

/** Make the lanes of these rows taller by one factor, none over its limit; return the px it takes, at most `free`. */
function raiseLanes(rows: readonly TrackRow[], limit: (row: TrackRow) => number, free: number): number {
  const low = rows.filter(row => row.lane < limit(row));
  const now = low.reduce((sum, row) => sum + row.lanes * row.lane, 0);
  const factor = (now + free) / Math.max(now, 1);
  let used = 0;
  for (const row of low) {
    const lane = Math.max(row.lane, Math.min(Math.floor(row.lane * factor), limit(row)));
    const more = row.lanes * (lane - row.lane);
    row.lane = lane;
    row.height += more;
    used += more;
  }
  return used;
}
