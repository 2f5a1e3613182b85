// Where each track stands: the ruler's tracks are in display order, pinned ones first.
import type { TracePayload } from '../../api/types';

export type Track = TracePayload['tracks'][number];
export type Group = TracePayload['groups'][number];

export const LANE = 18;
export const GROUP = 26;
export const COUNTER = 36;
const BLAME = 28;
const FOLDED = 8;
const PAD = 6;
/** Of a deeper track so many lanes are drawn; the rest is a strip below them. */
export const LANES = 4;
export const STRIP = 7;

export interface Row {
  key: string;
  kind: 'group' | 'slices' | 'counter' | 'blame';
  y: number;
  height: number;
  /** Height of one lane; folded tracks are one thin lane. */
  lane: number;
  /** How many lanes are drawn, and how many more are one strip below these. */
  lanes: number;
  more: number;
  folded: boolean;
  pinned: boolean;
  group: number | null;
  track?: Track;
}

export interface Arrangement {
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

export const NOTHING_ARRANGED: Arrangement = {
  folded: new Set(),
  deep: new Set(),
  pinned: [],
  hidden: new Set(),
  order: [],
  filter: '',
};

export interface Layout {
  rows: Row[];
  height: number;
}

export function arrange(payload: TracePayload, how: Arrangement): Layout {
  const wanted = how.filter.trim().toLowerCase();
  const tracks = payload.tracks.filter(
    track =>
      track.kind !== 'steps' &&
      !how.hidden.has(track.id) &&
      (wanted === '' || nameOf(track, payload).toLowerCase().includes(wanted)),
  );
  const rows: Row[] = [];
  let y = 0;
  const put = (row: Omit<Row, 'y'>) => {
    rows.push({ ...row, y });
    y += row.height;
  };
  const putTrack = (track: Track, pinned: boolean) => {
    const folded = how.folded.has(String(track.id));
    const kind = track.kind === 'counter' || track.kind === 'blame' ? track.kind : 'slices';
    const lane = folded ? FOLDED : kind === 'blame' ? BLAME : LANE;
    // Whoever unfolds Python frames wants to see what lies inside them.
    const whole = folded || payload.python || how.deep.has(track.id);
    const lanes = Math.min(Math.max(track.depth, 1), whole ? Infinity : LANES);
    const more = Math.max(track.depth, 1) - lanes;
    const height = folded
      ? FOLDED + PAD + 6
      : kind === 'counter'
        ? COUNTER
        : lanes * lane + (more > 0 ? STRIP : 0) + PAD;
    put({
      key: `${pinned ? 'p' : 't'}${track.id}`,
      kind,
      height,
      lane,
      lanes,
      more,
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
      height: GROUP,
      lane: 0,
      lanes: 0,
      more: 0,
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

/** How a track is called: its own name, with its process or device where that is needed to find it. */
export function nameOf(track: Track, payload: TracePayload): string {
  const group = track.group === null ? undefined : payload.groups[track.group];
  return group ? `${group.name} ${track.name}` : track.name;
}

/** What stands beside a row: the name of its track or group; of a pinned track both, as it left its group. */
export function labelOf(row: Row, payload: TracePayload): string {
  const group = row.group === null ? undefined : payload.groups[row.group];
  const name = row.track ? row.track.name : (group?.name ?? '');
  return row.pinned && group ? `${group.name} · ${name}` : name;
}

/** Where a lane is drawn in its row: how far below the row's top, and how high. */
export function laneBox(row: Row, depth: number): { top: number; height: number } {
  if (row.folded) {
    return { top: 5, height: row.lane - 1 };
  }
  const height = depth < row.lanes ? row.lane - 1 : STRIP;
  return { top: 3 + Math.min(depth, row.lanes) * row.lane, height };
}

/** Whether any row of a kind is in sight. */
export const shows = (layout: Layout, kind: Row['kind'], scroll: number, height: number): boolean =>
  layout.rows.some(row => row.kind === kind && row.y < scroll + height && row.y + row.height > scroll);

/** The row at a height, by halving. */
export function rowAt(layout: Layout, y: number): Row | undefined {
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
