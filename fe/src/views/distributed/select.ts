// What the Distributed page draws, from the payload.
import type { Distributed } from '../../api/types';

type Payload = Distributed;

/** "rank 3", or the worker where its rank is not known. */
export const rankName = (rank: number | null, worker: string): string =>
  rank === null ? worker : `rank ${rank}`;

/** What a row of the job is called: a worker, where the rank of one is not known (its name may be a process id). */
export const rowNoun = ({ ranks, stragglers }: Payload): 'rank' | 'worker' =>
  [...ranks, ...stragglers].some(row => row.rank === null) ? 'worker' : 'rank';

export type Part = 'computation_ns' | 'overlap_ns' | 'exposed_ns' | 'other_ns';

export interface Grid {
  rows: string[];
  steps: string[];
  values: (number | null)[][];
}

/** A part of the steps as a map of ranks and steps; `workers` are those of its rows. */
export function grid(
  payload: Payload,
  value: (row: Payload['overview'][number]) => number,
): Grid & { workers: string[] } {
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

export const greatest = (...grids: Grid[]): number =>
  grids.reduce(
    (most, { values }) =>
      values.reduce((all, row) => row.reduce<number>((m, v) => Math.max(m, v ?? 0), all), most),
    0,
  );

/** Of a job so large that the rows of its ranks come page by page. */
export const isLarge = (payload: Payload): boolean => payload.ranks.length < payload.rank_count;

export const backends = (payload: Payload): string =>
  [...new Set([...payload.groups, ...payload.group_families].flatMap(group => group.backends))].join(', ');

export type NodeRow = Payload['late_hosts'][number];

type Straggler = Payload['stragglers'][number];

/** The first rows, those of one host below each other under the host; as they are where hosts tell no ranks apart. */
export function byNode({ stragglers, late_hosts }: Payload, listed: number): (NodeRow | Straggler)[] {
  const first = stragglers.slice(0, listed);
  const hosts = new Map(late_hosts.map(host => [host.host, host]));
  const order = [...new Set(first.map(row => hosts.get(row.host ?? '') ?? row))];
  return order.flatMap(key => (isNode(key) ? [key, ...first.filter(row => row.host === key.host)] : [key]));
}

export const isNode = (row: NodeRow | Straggler): row is NodeRow => !('worker' in row);

const BESIDE = 4;

/** A few ranks for one timeline: the late one and those beside it, in order. */
export function someRanks(payload: Payload): string[] {
  const workers = payload.averages.map(row => row.worker);
  const at = Math.max(workers.indexOf(payload.verdict.worker ?? ''), 0);
  const from = Math.max(Math.min(at - 1, workers.length - BESIDE), 0);
  return workers.slice(from, from + BESIDE);
}
