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
export interface Range {
  first: number;
  last: number;
}

export interface Extent {
  begin: number;
  end: number;
}

export function extentOf({ start_ns: starts, duration_ns: durations }: ServingColumns): Extent {
  const last = starts.length - 1;
  const begin = starts[0] ?? 0;
  return { begin, end: Math.max((starts[last] ?? 0) + (durations[last] ?? 0), begin + 1) };
}

/** A rectangle per iteration; where several share a pixel, one as high as the longest of them. */
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

/** A step line through the values: the highest of each pixel; null breaks it. */
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

/** The iteration at a time, or the one before it. */
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

/** Where an average iteration of these goes. */
export function sharesOf(columns: ServingColumns, title: string, rows: readonly number[]): Shares {
  const mean = (values: readonly number[]) =>
    rows.reduce((sum, row) => sum + values[row]!, 0) / Math.max(rows.length, 1);
  const causes = Object.entries(columns.idle)
    .filter(([cause]) => cause !== 'idle')
    .map(([cause, values]) => ({ cause, ns: mean(values) }))
    .filter(({ ns }) => ns > 0)
    .sort((a, b) => b.ns - a.ns);
  return { title, duration: mean(columns.duration_ns), busy: mean(columns.busy_ns), causes };
}

/** The iterations that are shown alone: the chosen ones, else those of the most frequent phase. */
export function shownShares({ iterations, phases }: ServingPayload, chosen: Range | null): Shares {
  const numbers = iterations.phase.map((_, i) => i);
  if (chosen) {
    const rows = numbers.slice(chosen.first, chosen.last + 1);
    const title =
      rows.length === 1
        ? `iteration ${chosen.first}`
        : `an average of iterations ${chosen.first} to ${chosen.last}`;
    return sharesOf(iterations, title, rows);
  }
  const phase = (phases.find(row => row.phase === 'decode') ?? phases[0])?.phase ?? null;
  return sharesOf(
    iterations,
    `an average ${phase ?? ''} iteration`.replace('  ', ' '),
    numbers.filter(i => iterations.phase[i] === phase),
  );
}

/** What is said of the iterations under the pointer. */
export function describe(columns: ServingColumns, { first, last }: Range): string {
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
    return [`Iterations ${first} to ${last}: ${duration}`, ...tokens].filter(Boolean).join(', ');
  }
  const kv = columns.kv_tokens[first] ?? null;
  return [
    `Iteration ${first}: ${columns.phase[first] ?? 'unknown phase'}, ${duration}`,
    ...tokens,
    kv === null ? '' : `${formatCount(kv)} KV tokens`,
  ]
    .filter(Boolean)
    .join(', ');
}
