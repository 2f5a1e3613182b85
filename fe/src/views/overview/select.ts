// From the payload to what is drawn: sums, shares, the sentence. No React here.
import type { Overview } from '../../api/types';
import { BUSY, CATEGORIES, CATEGORY_TITLE, type Category } from '../../base/category';
import { formatDuration, formatNumber, formatRatio, plural, timeUnit } from '../../base/format';

export type Step = Overview['steps'][number];
type Times = Step['categories'];

export interface Part {
  category: Category;
  title: string;
  /** Time before this part on the stacked bar, ns. */
  from: number;
  ns: number;
  share: number;
}

/** The parts of a step that take time, in order of priority. */
export function parts(times: Times, duration: number): Part[] {
  const found: Part[] = [];
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

export interface Shown {
  title: string;
  duration: number;
  times: Times;
}

/** The average, or the one step that was chosen. */
export function shown(overview: Overview, step: string | undefined): Shown | null {
  const chosen = overview.steps.find(one => one.name === step);
  if (chosen) {
    return { title: stepTitle(overview, chosen), duration: chosen.duration_ns, times: chosen.categories };
  }
  const { average } = overview;
  if (!average) {
    return null;
  }
  const title = overview.steps_recorded ? 'An average step' : 'The whole trace';
  return { title, duration: average.duration_ns, times: average.categories };
}

export const stepTitle = (overview: Overview, step: Step): string =>
  overview.steps_recorded ? `Step ${step.name}` : 'The whole trace';

export function busy(times: Times): number {
  return BUSY.reduce((sum, category) => sum + (times[category] ?? 0), 0);
}

export interface Row {
  category: Category;
  title: string;
  average: number | null;
  share: number | null;
  least: number;
  most: number;
  reason: string | undefined;
}

/** The breakdown table: known categories that take time somewhere, and the unknown ones with their reason. */
export function rows(overview: Overview, now: Shown): Row[] {
  const complete = overview.steps.filter(step => step.complete);
  return CATEGORIES.flatMap(category => {
    const ns = now.times[category];
    const all = complete.map(step => step.categories[category] ?? 0);
    if (ns === 0 && all.every(value => value === 0)) {
      return [];
    }
    return [
      {
        category,
        title: CATEGORY_TITLE[category],
        average: ns,
        share: ns === null || now.duration === 0 ? null : ns / now.duration,
        least: Math.min(...all),
        most: Math.max(...all),
        reason: overview.reasons[category],
      },
    ];
  });
}

/** "98.5 – 98.6 ms": both in the unit of the larger. */
export function range(least: number, most: number): string {
  const { scale, unit } = timeUnit(most);
  return `${formatNumber(least / scale)} – ${formatNumber(most / scale)} ${unit}`;
}

export interface Sentence {
  before: string;
  mark: string;
  category: Category;
  middle: string;
  cause?: { text: string; category: Category };
  after: string;
}

const CAUSE: Partial<Record<Category, string>> = {
  runtime: 'runtime calls',
  dataloader: 'the data loader',
  cpu_exec: 'work on the host',
  other: 'something that was not recorded',
  communication: 'communication',
};

function portion(share: number): string {
  const words: [number, string][] = [
    [0.97, 'all'],
    [0.85, 'nearly all'],
    [0.71, 'three quarters'],
    [0.6, 'two thirds'],
    [0.45, 'half'],
    [0.29, 'a third'],
  ];
  return words.find(([least]) => share >= least)?.[1] ?? 'the largest part';
}

/** The answer in one sentence, as a person would say it. */
export function sentence(overview: Overview, now: Shown): Sentence {
  const what = overview.steps_recorded ? 'every step' : 'the time';
  const device =
    overview.configuration.device_type === 'CUDA' || overview.configuration.device_type === 'ROCm'
      ? 'GPU'
      : 'device';
  const total = now.duration || 1;
  const found = parts(now.times, total);
  const waits = found.filter(part => !BUSY.includes(part.category));
  const largest = (list: Part[]) => list.reduce((a, b) => (b.ns > a.ns ? b : a), list[0]!);
  if (overview.devices.length === 0) {
    const top = found.length > 0 ? largest(found) : undefined;
    if (!top) {
      return {
        before: 'Nothing in this trace ',
        mark: 'takes time',
        category: 'other',
        middle: '',
        after: '.',
      };
    }
    return {
      before: top.category === 'cpu_exec' ? 'Operators on the CPU take ' : `${top.title} takes `,
      mark: `${formatRatio(top.share)} of ${what}`,
      category: top.category,
      middle: '',
      after: '.',
    };
  }
  const talk = (now.times.communication ?? 0) / total;
  const waiting = 1 - busy(now.times) / total;
  if (talk > 0.25 && talk >= waiting) {
    return {
      before: '',
      mark: `${formatRatio(talk)} of ${what}`,
      category: 'communication',
      middle: ' is communication that no computation hides',
      after: '.',
    };
  }
  if (waiting < 0.1 || waits.length === 0) {
    return {
      before: `The ${device} is busy `,
      mark: `${formatRatio(1 - waiting)} of ${what}`,
      category: 'kernel',
      middle: '',
      after: '.',
    };
  }
  const cause = largest(waits);
  return {
    before: `The ${device} waits `,
    mark: `${formatRatio(waiting)} of ${what}`,
    category: 'other',
    middle: `; ${portion(cause.ns / (waiting * total))} of that wait is for `,
    cause: { text: CAUSE[cause.category] ?? cause.title, category: cause.category },
    after: '.',
  };
}

/** One line of why: what varies between the steps, what was left out. */
export function why(overview: Overview): string {
  const complete = overview.steps.filter(step => step.complete);
  const dropped = overview.steps.length - complete.length;
  const left = dropped > 0 ? ` ${plural(dropped, 'incomplete step')} left out.` : '';
  if (!overview.steps_recorded) {
    return overview.reasons.steps ? capital(overview.reasons.steps) + '.' : '';
  }
  if (complete.length < 2) {
    return `${plural(complete.length, 'complete step')} recorded.${left}`;
  }
  const spread = CATEGORIES.map(category => {
    const all = complete.map(step => step.categories[category] ?? 0);
    return { category, least: Math.min(...all), most: Math.max(...all) };
  });
  const widest = spread.reduce((a, b) => (b.most - b.least > a.most - a.least ? b : a));
  const durations = complete.map(step => step.duration_ns);
  if (widest.most - widest.least < 0.005 * Math.max(...durations)) {
    return `${plural(complete.length, 'step')} of ${formatDuration(Math.max(...durations))}, all alike.${left}`;
  }
  const steps = `${plural(complete.length, 'step')} of ${range(Math.min(...durations), Math.max(...durations))}`;
  return `${steps}; ${CATEGORY_TITLE[widest.category]} varies most, ${range(widest.least, widest.most)}.${left}`;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const gainText = (ns: number): string => `up to −${formatDuration(ns)} per step`;
