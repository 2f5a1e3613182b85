// What the Distributed page draws, selected from the payload.
import type { DistributedPayload } from '../../api/types';

type Payload = DistributedPayload;

/** "rank 3", or the worker if its rank is unknown. */
export const rankName = (rank: number | null, worker: string): string =>
  rank === null ? worker : `rank ${rank}`;

/** Noun of a row: "worker" if the rank of any row is unknown (its name may be a process id). */
export const rankNoun = ({ ranks, stragglers }: Payload): 'rank' | 'worker' =>
  [...ranks, ...stragglers].some(row => row.rank === null) ? 'worker' : 'rank';

export type StepPart = 'computation_ns' | 'overlap_ns' | 'exposed_ns' | 'other_ns';

interface RankStepGrid {
  rows: string[];
  steps: string[];
  values: (number | null)[][];
}

/** One part of the steps as a map of ranks and steps; `workers` has the worker of each row. */
export function grid(
  payload: Payload,
  value: (row: Payload['overview'][number]) => number,
): RankStepGrid & { workers: string[] } {
  const steps = [...new Set(payload.overview.map(row => row.step))];
  const workers = new Map(payload.averages.map((row, i) => [row.worker, i]));
  for (const row of payload.overview) {
    if (!workers.has(row.worker)) {
      workers.set(row.worker, workers.size);
    }
  }
  const ranks = new Map(payload.overview.map(row => [row.worker, row.rank]));
  const at = new Map(steps.map((step, i) => [step, i]));
  const values = [...workers].map(() => steps.map((): number | null => null));
  for (const row of payload.overview) {
    values[workers.get(row.worker)!]![at.get(row.step)!] = value(row);
  }
  return {
    workers: [...workers.keys()],
    rows: [...workers.keys()].map(worker => rankName(ranks.get(worker) ?? null, worker)),
    steps,
    values,
  };
}

export const maxValue = (...grids: RankStepGrid[]): number =>
  grids.reduce(
    (most, { values }) =>
      values.reduce((all, row) => row.reduce<number>((m, v) => Math.max(m, v ?? 0), all), most),
    0,
  );

/** Whether the job is so large that rows of its ranks are fetched page by page. */
export const isLarge = (payload: Payload): boolean => payload.ranks.length < payload.rank_count;

export const backends = (payload: Payload): string =>
  [...new Set([...payload.groups, ...payload.group_families].flatMap(group => group.backends))].join(', ');

export type HostRow = Payload['late_hosts'][number];

type Straggler = Payload['stragglers'][number];

/** Return the first rows, grouped below their hosts; ungrouped if the payload names no hosts. */
export function groupByHost({ stragglers, late_hosts }: Payload, listed: number): (HostRow | Straggler)[] {
  const first = stragglers.slice(0, listed);
  const hosts = new Map(late_hosts.map(host => [host.host, host]));
  const order = [...new Set(first.map(row => hosts.get(row.host ?? '') ?? row))];
  return order.flatMap(key =>
    isHostRow(key) ? [key, ...first.filter(row => row.host === key.host)] : [key],
  );
}

export const isHostRow = (row: HostRow | Straggler): row is HostRow => !('worker' in row);

/** Most ranks opened on one timeline at once: more tracks don’t fit on a screen. */
export const MAX_COMPARED_RANKS = 4;

/** Return a few ranks to compare on one timeline: the straggler and its neighbors, in order. */
export function ranksAroundStraggler(payload: Payload): string[] {
  const workers = payload.averages.map(row => row.worker);
  const at = Math.max(workers.indexOf(payload.verdict.worker ?? ''), 0);
  const from = Math.max(Math.min(at - 1, workers.length - MAX_COMPARED_RANKS), 0);
  return workers.slice(from, from + MAX_COMPARED_RANKS);
}
