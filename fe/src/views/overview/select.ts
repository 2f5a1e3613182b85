// Sums and shares for the charts of the Overview, from its payload. No React here.
import type { DistributedPayload, Overview } from '../../api/types';
import { DEVICE_CATEGORIES, CATEGORIES, CATEGORY_TITLE, type Category } from '../../base/category';
import { formatNumber, timeUnit } from '../../base/format';
import { capitalize, type Phrase } from '../../base/text';

export type Step = Overview['steps'][number];
type Times = Step['categories'];

export interface CategoryPart {
  category: Category;
  title: string;
  /** Time before this part on the stacked bar, ns. */
  from: number;
  ns: number;
  share: number;
}

/** Returns the parts of a step that take time, in order of priority. */
export function parts(times: Times, duration: number): CategoryPart[] {
  const found: CategoryPart[] = [];
  for (const category of CATEGORIES) {
    const ns = times[category] ?? 0;
    if (ns > 0) {
      const last = found[found.length - 1];
      const from = last ? last.from + last.ns : 0;
      found.push({
        category,
        title: CATEGORY_TITLE[category],
        from,
        ns,
        share: duration > 0 ? ns / duration : 0,
      });
    }
  }
  return found;
}

/** Returns at most `count` steps in order: of each stretch of steps that share a column, the longest. */
export function longestSteps(steps: readonly Step[], count: number): Step[] {
  const size = Math.max(1, Math.ceil(steps.length / Math.max(1, count)));
  if (size === 1) {
    return [...steps];
  }
  const found: Step[] = [];
  for (let first = 0; first < steps.length; first += size) {
    const stretch = steps.slice(first, first + size);
    found.push(stretch.reduce((longest, step) => (step.duration_ns > longest.duration_ns ? step : longest)));
  }
  return found;
}

export interface Shown {
  title: string;
  duration: number;
  times: Times;
}

/** Returns the average, or the chosen step. */
export function shown(overview: Overview, step: string | undefined): Shown | null {
  const chosen = overview.steps.find(one => one.name === step);
  if (chosen) {
    return { title: stepTitle(overview, chosen), duration: chosen.duration_ns, times: chosen.categories };
  }
  const { average } = overview;
  if (!average) {
    return null;
  }
  const { step_noun: noun } = overview;
  const one = average.steps === 1 ? `The ${noun}` : `An average ${noun}`;
  const recorded = average.outliers.length > 0 ? `A typical ${noun}` : one;
  const title = overview.steps_recorded ? recorded : 'The whole trace';
  return { title, duration: average.duration_ns, times: average.categories };
}

export const stepTitle = (overview: Overview, step: Step): string =>
  overview.steps_recorded ? `${capitalize(overview.step_noun)} ${step.name}` : 'The whole trace';

export function busy(times: Times): number {
  return DEVICE_CATEGORIES.reduce((sum, category) => sum + (times[category] ?? 0), 0);
}

/** Health notes of a truncated file, which usually lacks the device work. */
const TRUNCATED_NOTES = ['truncated', 'gzip_damaged'];

/** Returns the share of an average step in which the device is idle; null if unknown, or with several devices. */
export function idleShare({ average, devices, health }: Overview): number | null {
  const isComplete = !health.some(({ kind }) => TRUNCATED_NOTES.includes(kind));
  const known =
    isComplete && average && DEVICE_CATEGORIES.every(category => average.categories[category] !== null);
  if (!known || average.duration_ns <= 0 || devices.length !== 1) {
    return null;
  }
  return 1 - busy(average.categories) / average.duration_ns;
}

interface Evidence {
  view: string;
  params: Record<string, string>;
}

/** Returns what a part of the bar opens: the kernels, the window with the copies, the gaps or the host operators. */
export function evidence(overview: Overview, category: Category, step: string | undefined): Evidence {
  const of: Record<string, string> = step === undefined ? {} : { step };
  if (category === 'kernel') {
    return { view: 'kernels', params: of };
  }
  const area = { view: 'trace', params: { area: windowOf(overview, step) } };
  if (DEVICE_CATEGORIES.includes(category)) {
    return area;
  }
  if (overview.devices.some(device => device.utilization !== null)) {
    return { view: 'idle', params: of };
  }
  return overview.configuration.recorded.host ? { view: 'operators', params: of } : area;
}

/** Returns the window from the first to the last of the steps that count. */
function windowOf({ steps }: Overview, name: string | undefined): string {
  const counted = steps.filter(step => (name === undefined ? step.complete : step.name === name));
  const begin = Math.min(...counted.map(step => step.start_ns));
  const end = Math.max(...counted.map(step => step.start_ns + step.duration_ns));
  return `${Math.floor(begin)}-${Math.ceil(end)}`;
}

/** Returns whether files of other ranks can add to this one: it is of a job of several ranks, or communicates. */
export const communicates = ({ configuration, average }: Overview): boolean =>
  average !== null && ((configuration.world_size ?? 1) > 1 || (average.categories.communication ?? 0) > 0);

interface CommunicationPart {
  title: string;
  ns: number;
  share: number | null;
}

export const COMMUNICATION_PARTS = ['waiting for other ranks', 'transfer', 'not compared'] as const;

/** Returns what the communication of an average step is spent on, once the other ranks are compared. */
export function splitCommunication({ waiting, average }: Overview): CommunicationPart[] {
  if (!waiting || !average) {
    return [];
  }
  const part = (title: string, ns: number) => ({
    title,
    ns,
    share: average.duration_ns > 0 ? ns / average.duration_ns : null,
  });
  const times = [waiting.waiting_ns, waiting.transfer_ns, waiting.uncompared_ns];
  return COMMUNICATION_PARTS.map((title, i) => part(title, times[i]!));
}

/** The complete step with the minimum or maximum time. */
export interface Extreme {
  step: string;
  ns: number;
}

/** Returns the steps with the minimum and the maximum; the first of equal ones, null without steps. */
export function extremes(
  steps: readonly Step[],
  value: (step: Step) => number,
): { min: Extreme; max: Extreme } | null {
  const [first, ...others] = steps.map(step => ({ step: step.name, ns: value(step) }));
  if (first === undefined) {
    return null;
  }
  return {
    min: others.reduce((a, b) => (b.ns < a.ns ? b : a), first),
    max: others.reduce((a, b) => (b.ns > a.ns ? b : a), first),
  };
}

interface BreakdownRow {
  category: Category;
  title: string;
  average: number | null;
  share: number | null;
  extremes: ReturnType<typeof extremes>;
  reason: readonly Phrase[] | undefined;
}

/** Returns the rows of the breakdown: categories that take time in some step, and unknown ones with their reason. */
export function rows(overview: Overview, now: Shown): BreakdownRow[] {
  const complete = overview.steps.filter(step => step.complete);
  return CATEGORIES.flatMap(category => {
    const ns = now.times[category];
    const ends = extremes(complete, step => step.categories[category] ?? 0);
    if (ns === 0 && !ends?.max.ns) {
      return [];
    }
    return [
      {
        category,
        title: CATEGORY_TITLE[category],
        average: ns,
        share: ns === null || now.duration === 0 ? null : ns / now.duration,
        extremes: ends,
        reason: overview.reasons[category],
      },
    ];
  });
}

/** Returns "98.5" and "98.6 ms": both in the unit of the larger. */
export function range(min: number, max: number): [string, string] {
  const { scale, unit } = timeUnit(max);
  return [formatNumber(min / scale), `${formatNumber(max / scale)} ${unit}`];
}

/** Returns how long after the median rank each rank arrives, on average over the steps, in order of the ranks. */
export function latenessByRank({ heat_map, ranks }: DistributedPayload): { name: string; ns: number }[] {
  const numbers = new Map(ranks.map(({ worker, rank }) => [worker, rank]));
  return (heat_map?.workers ?? []).map((worker, i) => {
    const known = (heat_map?.lateness_ns[i] ?? []).filter(ns => ns !== null);
    const rank = numbers.get(worker) ?? null;
    return {
      name: rank === null ? worker : `rank ${rank}`,
      ns: known.reduce((sum, ns) => sum + ns, 0) / Math.max(known.length, 1),
    };
  });
}
