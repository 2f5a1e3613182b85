// The rows of the timeline: position and height of each track, pinned ones first.
import type { TracePayload } from '../../api/types';

export type Track = TracePayload['tracks'][number];

/** Heights of lanes and tracks, px. */
const LANE_PX = 18;
const GROUP_PX = 26;
const COUNTER_PX = 36;
const BLAME_PX = 28;
const FOLDED_PX = 8;
const PAD_PX = 6;
/** Most lanes drawn of a track until it is unfolded; deeper ones are a strip below. */
export const MAX_LANES = 4;
export const STRIP_PX = 7;

export interface TrackRow {
  key: string;
  kind: 'group' | 'slices' | 'counter' | 'blame';
  y: number;
  height: number;
  /** Height of one lane; folded tracks are one thin lane. */
  lane: number;
  /** Number of lanes drawn, and of those in the strip below. */
  lanes: number;
  more: number;
  /** Whether the user may show all lanes, or only the first ones again. */
  unfolds: boolean;
  folded: boolean;
  pinned: boolean;
  group: number | null;
  track?: Track;
}

export interface TrackArrangement {
  /** Names of groups ("g3") and ids of tracks that are folded. */
  folded: ReadonlySet<string>;
  /** Tracks of which all lanes are drawn. */
  deep: ReadonlySet<number>;
  pinned: readonly number[];
  hidden: ReadonlySet<number>;
  /** Groups in the order the user gave them; those not named follow. */
  order: readonly number[];
  filter: string;
}

export const DEFAULT_ARRANGEMENT: TrackArrangement = {
  folded: new Set(),
  deep: new Set(),
  pinned: [],
  hidden: new Set(),
  order: [],
  filter: '',
};

export interface Layout {
  rows: TrackRow[];
  height: number;
}

/** Return the rows of the visible tracks in display order. */
export function buildLayout(payload: TracePayload, how: TrackArrangement): Layout {
  const query = how.filter.trim().toLowerCase();
  const tracks = payload.tracks.filter(
    track =>
      track.kind !== 'steps' &&
      !how.hidden.has(track.id) &&
      (query === '' || trackName(track, payload).toLowerCase().includes(query)),
  );
  const rows: TrackRow[] = [];
  let y = 0;
  const put = (row: Omit<TrackRow, 'y'>) => {
    rows.push({ ...row, y });
    y += row.height;
  };
  const putTrack = (track: Track, pinned: boolean) => {
    const folded = how.folded.has(String(track.id));
    const kind = track.kind === 'counter' || track.kind === 'blame' ? track.kind : 'slices';
    const lane = folded ? FOLDED_PX : kind === 'blame' ? BLAME_PX : LANE_PX;
    // With Python frames unfolded, all lanes are drawn to show what the frames call.
    const allLanes = folded || payload.python || how.deep.has(track.id);
    const lanes = Math.min(Math.max(track.depth, 1), allLanes ? Infinity : MAX_LANES);
    const more = Math.max(track.depth, 1) - lanes;
    const height = folded
      ? FOLDED_PX + PAD_PX + 6
      : kind === 'counter'
        ? COUNTER_PX
        : lanes * lane + (more > 0 ? STRIP_PX : 0) + PAD_PX;
    put({
      key: `${pinned ? 'p' : 't'}${track.id}`,
      kind,
      height,
      lane,
      lanes,
      more,
      unfolds: !folded && !payload.python && track.depth > MAX_LANES,
      folded,
      pinned,
      group: track.group,
      track,
    });
  };
  for (const id of how.pinned) {
    const track = tracks.find(candidate => candidate.id === id);
    if (track) {
      putTrack(track, true);
    }
  }
  const groups = payload.groups.map((_, i) => i);
  const order = [...how.order.filter(i => groups.includes(i)), ...groups.filter(i => !how.order.includes(i))];
  for (const group of order) {
    const members = tracks.filter(track => track.group === group);
    if (members.length === 0) {
      continue;
    }
    const folded = how.folded.has(`g${group}`);
    put({
      key: `g${group}`,
      kind: 'group',
      height: GROUP_PX,
      lane: 0,
      lanes: 0,
      more: 0,
      unfolds: false,
      folded,
      pinned: false,
      group,
    });
    if (!folded) {
      members.forEach(track => putTrack(track, false));
    }
  }
  return { rows, height: y };
}

/** Return a track's name after that of its process or device. */
export function trackName(track: Track, payload: TracePayload): string {
  const group = track.group === null ? undefined : payload.groups[track.group];
  return group ? `${group.name} ${track.name}` : track.name;
}

/** Return a row's label: the name of its track or group, or both for a pinned track. */
export function rowLabel(row: TrackRow, payload: TracePayload): string {
  const group = row.group === null ? undefined : payload.groups[row.group];
  const name = row.track ? row.track.name : (group?.name ?? '');
  return row.pinned && group ? `${group.name} · ${name}` : name;
}

/** Return a lane's offset from the top of its row and its height, px. */
export function laneBox(row: TrackRow, depth: number): { top: number; height: number } {
  if (row.folded) {
    return { top: 5, height: row.lane - 1 };
  }
  const height = depth < row.lanes ? row.lane - 1 : STRIP_PX;
  return { top: 3 + Math.min(depth, row.lanes) * row.lane, height };
}

/** Return whether any row of a kind is visible. */
export const isKindVisible = (
  layout: Layout,
  kind: TrackRow['kind'],
  scroll: number,
  height: number,
): boolean =>
  layout.rows.some(row => row.kind === kind && row.y < scroll + height && row.y + row.height > scroll);

/** Return the row at `y`, by binary search. */
export function rowAt(layout: Layout, y: number): TrackRow | undefined {
  let low = 0;
  let high = layout.rows.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const row = layout.rows[middle]!;
    if (y < row.y) {
      high = middle - 1;
    } else if (y >= row.y + row.height) {
      low = middle + 1;
    } else {
      return row;
    }
  }
  return undefined;
}
