// What the components of the Hangs tab need of its payload.
import type { HangCallRow, HangRankRow, HangsPayload } from '../../api/types';

export const VERDICT_NAMES: Record<HangsPayload['verdict']['verdict'], string> = {
  finished: 'finished',
  running: 'running',
  not_joined: 'missing call',
  mismatch_op: 'different calls',
  mismatch_size: 'different sizes',
  mismatch_order: 'different order',
  no_dump: 'no dump',
  unreadable_dump: 'unreadable dump',
  p2p_cycle: 'cycle of messages',
  group_cycle: 'cycle of groups',
  unmatched_p2p: 'unmatched message',
  all_joined: 'everyone waits',
  unknown: 'unknown',
};

/** Return sorted ranks with runs joined: "0, 1, 3 to 7"; of many runs the first ones and a count. */
export function formatRanks(ranks: readonly number[], most = 6): string {
  const runs: [number, number][] = [];
  for (const rank of ranks) {
    const last = runs.at(-1);
    if (last && rank === last[1] + 1) {
      last[1] = rank;
    } else {
      runs.push([rank, rank]);
    }
  }
  const texts = runs.map(([begin, end]) =>
    begin === end ? `${begin}` : end === begin + 1 ? `${begin}, ${end}` : `${begin} to ${end}`,
  );
  const left = runs.slice(most).reduce((sum, [begin, end]) => sum + end - begin + 1, 0);
  return left > 0 ? `${texts.slice(0, most).join(', ')} and ${left} more` : texts.join(', ');
}

/** Return a moment in UTC to a tenth of a second: 2026-11-25 14:02:11.4 UTC. */
export function formatTime(ns: number): string {
  return new Date(ns / 1e6)
    .toISOString()
    .replace('T', ' ')
    .replace(/\d\dZ$/, ' UTC');
}

export type CellState = 'finished' | 'waiting' | 'pending' | 'missing' | 'different' | 'unseen' | 'unknown';

/** A row of the picture: one rank, or several with the same cells. */
export interface PictureRow {
  ranks: number[];
  culprit: boolean;
  cells: CellState[];
}

/** Ranks up to which each has a row of its own. */
export const MAX_ROWS = 24;

const LISTS = ['waiting', 'pending', 'missing', 'different', 'unseen', 'unknown'] as const;

/** Return the rows of the picture: a rank each, or, in a larger group, ranks with the same cells together. */
export function pictureRows(
  calls: readonly HangCallRow[],
  members: readonly number[],
  culprits: readonly number[],
): PictureRow[] {
  const states = calls.map(call => {
    const found = new Map<number, CellState>();
    // What a rank called counts more than whether it waits in it.
    for (const list of LISTS) {
      call[list].forEach(rank => found.set(rank, list));
    }
    return found;
  });
  const atFault = new Set(culprits);
  const rows = members.map(rank => ({
    ranks: [rank],
    culprit: atFault.has(rank),
    cells: states.map(found => found.get(rank) ?? 'finished'),
  }));
  if (rows.length <= MAX_ROWS) {
    return rows;
  }
  const merged = new Map<string, PictureRow>();
  for (const row of rows) {
    const key = `${row.culprit} ${row.cells.join()}`;
    const same = merged.get(key);
    if (same) {
      same.ranks.push(...row.ranks);
    } else {
      merged.set(key, row);
    }
  }
  return [...merged.values()].toSorted(
    (a, b) => Number(b.culprit) - Number(a.culprit) || a.ranks.length - b.ranks.length,
  );
}

/** Return the members of the group that the calls belong to. */
export function membersOf(payload: HangsPayload): number[] {
  const name = payload.calls[0]?.group;
  const groups = payload.groups.filter(({ group }) => group === name);
  return (groups.find(({ root }) => root) ?? groups[0])?.ranks ?? [];
}

/** Return the ranks that differ from most: culprits, and those without a readable dump, first. */
export function ranksInOrder(ranks: readonly HangRankRow[]): HangRankRow[] {
  const order: HangRankRow['role'][] = ['culprit', 'unreadable', 'missing', 'unseen', 'waiting', 'idle'];
  return ranks.toSorted((a, b) => order.indexOf(a.role) - order.indexOf(b.role) || a.rank - b.rank);
}
