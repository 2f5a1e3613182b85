// What the Serving view draws of its columns: reduced to pixels, so that 100,000 iterations draw like 100.
import type { ServingColumns, ServingPayload } from '../../api/types';
import { formatCount, formatDuration, plural } from '../../base/format';

export const PHASES = ['decode', 'mixed', 'prefill'] as const;

export const PHASE_COLORS: Record<string, string> = {
  decode: 'var(--x-gap)',
  mixed: 'var(--x-latency)',
  prefill: 'var(--c-dataloader)',
  unknown: 'var(--c-other)',
};

export const CAUSE_TITLES: Record<string, string> = {
  scheduler: 'Scheduler',
  launch: 'Preparing and launching',
  sampling_sync: 'Sampling and sync',
  network: 'Other processes',
  host_unrecorded: 'Host, not recorded',
  kernel_gaps: 'Between kernels',
  idle: 'No requests',
  prefill_blocks_decode: 'Prefill holds up decodes',
  preemption: 'Preempted, recomputed',
  slow_device: 'Slow kernels',
};

export const CAUSE_COLORS: Record<string, string> = {
  scheduler: 'var(--x-python)',
  launch: 'var(--x-launch)',
  sampling_sync: 'var(--x-sync)',
  network: 'var(--x-communication)',
  host_unrecorded: 'var(--x-unknown)',
  kernel_gaps: 'var(--x-gap)',
};

/** Iterations from `first` to `last`, both included. */
export interface IterationRange {
  first: number;
  last: number;
}

interface Extent {
  begin: number;
  end: number;
}

export function iterationsExtent({ start_ns: starts, duration_ns: durations }: ServingColumns): Extent {
  const last = starts.length - 1;
  const begin = starts[0] ?? 0;
  return { begin, end: Math.max((starts[last] ?? 0) + (durations[last] ?? 0), begin + 1) };
}

/** Return a rectangle per iteration; where several share a pixel, one as high as the longest of them. */
export function barsPath(
  columns: ServingColumns,
  phase: string,
  x: (ns: number) => number,
  y: (ns: number) => number,
): string {
  const path: string[] = [];
  const bottom = y(0);
  let pixel = -1;
  let highest = 0;
  const flush = () => {
    if (highest > 0) {
      path.push(`M${pixel} ${bottom}V${y(highest).toFixed(1)}h1V${bottom}z`);
    }
    highest = 0;
  };
  columns.start_ns.forEach((start, i) => {
    if ((columns.phase[i] ?? 'unknown') !== phase) {
      return;
    }
    const duration = columns.duration_ns[i]!;
    const [left, right] = [x(start), x(start + duration)];
    if (right - left >= 2) {
      flush();
      path.push(
        `M${left.toFixed(1)} ${bottom}V${y(duration).toFixed(1)}H${(right - 0.5).toFixed(1)}V${bottom}z`,
      );
      return;
    }
    if (Math.floor(left) !== pixel) {
      flush();
      pixel = Math.floor(left);
    }
    highest = Math.max(highest, duration);
  });
  flush();
  return path.join('');
}

/** Return a step line through the values: the highest of each pixel; null breaks it. */
export function stepsPath(
  columns: ServingColumns,
  values: readonly (number | null)[],
  x: (ns: number) => number,
  y: (value: number) => number,
): string {
  const path: string[] = [];
  let pixel = -1;
  let highest: number | null = null;
  const flush = () => {
    if (highest !== null) {
      path.push(
        `${path.length === 0 ? 'M' : 'H'}${pixel}${path.length === 0 ? ' ' : 'V'}${y(highest).toFixed(1)}`,
      );
    }
    highest = null;
  };
  columns.start_ns.forEach((start, i) => {
    const value = values[i];
    if (value === null || value === undefined) {
      return;
    }
    const at = Math.floor(x(start));
    if (at !== pixel) {
      flush();
      pixel = at;
    }
    highest = highest === null ? value : Math.max(highest, value);
  });
  flush();
  return path.join('');
}

/** Return the iteration at a time, or the one before it. */
export function iterationAt({ start_ns: starts }: ServingColumns, ns: number): number {
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return Math.max(low - 1, 0);
}

export interface Shares {
  title: string;
  /** Mean of an iteration. */
  duration: number;
  busy: number;
  causes: { cause: string; ns: number }[];
}

/** What some iterations take together. */
interface Sums {
  iterations: number;
  duration_ns: number;
  busy_ns: number;
  idle: Record<string, number>;
}

function sharesOf(title: string, { iterations, duration_ns, busy_ns, idle }: Sums): Shares {
  const count = Math.max(iterations, 1);
  const causes = Object.entries(idle)
    .filter(([cause]) => cause !== 'idle')
    .map(([cause, ns]) => ({ cause, ns: ns / count }))
    .filter(({ ns }) => ns > 0)
    .sort((a, b) => b.ns - a.ns);
  return { title, duration: duration_ns / count, busy: busy_ns / count, causes };
}

/** Whether the columns hold every iteration, and not a selection of very many. */
export const holdsAll = ({ iteration_numbers: numbers, iterations_total: total }: ServingPayload): boolean =>
  numbers.length === total;

/** Where the iterations that are shown alone go: the chosen ones, whose sums may come from the server, else those of the most frequent phase. */
export function shownShares(
  payload: ServingPayload,
  chosen: IterationRange | null,
  sums: Sums | null = null,
): Shares {
  const { iterations: columns, iteration_numbers: numbers, phases } = payload;
  if (chosen && (sums || holdsAll(payload) || chosen.first === chosen.last)) {
    const [first, last] = [numbers[chosen.first]!, numbers[chosen.last]!];
    const title = first === last ? `iteration ${first}` : `an average of iterations ${first} to ${last}`;
    return sharesOf(title, sums ?? sumsOf(columns, chosen));
  }
  const row = phases.find(each => each.phase === 'decode') ?? phases[0];
  const title = `an average ${row?.phase ?? ''} iteration`.replace('  ', ' ');
  return sharesOf(title, {
    iterations: row?.iterations ?? 0,
    duration_ns: row?.total_ns ?? 0,
    busy_ns: row?.busy_ns ?? 0,
    idle: row?.idle ?? {},
  });
}

function sumsOf(columns: ServingColumns, { first, last }: IterationRange): Sums {
  const sum = (values: readonly number[]) =>
    values.slice(first, last + 1).reduce((total, value) => total + value, 0);
  return {
    iterations: last - first + 1,
    duration_ns: sum(columns.duration_ns),
    busy_ns: sum(columns.busy_ns),
    idle: Object.fromEntries(Object.entries(columns.idle).map(([cause, values]) => [cause, sum(values)])),
  };
}

/** Describe the iterations under the pointer. */
export function describe(payload: ServingPayload, { first, last }: IterationRange): string {
  const { iterations: columns, iteration_numbers: numbers } = payload;
  const [from, to] = [numbers[first]!, numbers[last]!];
  if (first !== last && !holdsAll(payload)) {
    const end = columns.start_ns[last]! + columns.duration_ns[last]!;
    return `Iterations ${from} to ${to}: ${formatDuration(end - columns.start_ns[first]!)}`;
  }
  const sum = (values: readonly (number | null)[]) =>
    values.slice(first, last + 1).reduce<number | null>((total, value) => {
      return total === null || value === null ? null : total + value;
    }, 0);
  const duration = formatDuration(sum(columns.duration_ns));
  const [prompt, decodes] = [sum(columns.prompt_tokens), sum(columns.decode_requests)];
  const tokens = [
    prompt === null || prompt === 0 ? '' : `${formatCount(prompt)} prompt tokens`,
    decodes === null || decodes === 0
      ? ''
      : plural(decodes, first === last ? 'decoding request' : 'decoded token'),
  ];
  if (first !== last) {
    return [`Iterations ${from} to ${to}: ${duration}`, ...tokens].filter(Boolean).join(', ');
  }
  const kv = columns.kv_tokens[first] ?? null;
  return [
    `Iteration ${from}: ${columns.phase[first] ?? 'unknown phase'}, ${duration}`,
    ...tokens,
    kv === null ? '' : `${formatCount(kv)} KV tokens`,
  ]
    .filter(Boolean)
    .join(', ');
}
