// What the timeline keeps in the address.
import type { Span } from '../../timeline/tiles/store';
import type { ColorBy } from '../../timeline/draw/colors';
import type { Clock } from '../../base/ticks';

/** A part of a device's time: the longest of its category from `at` to `until`, or what lies at `at`. */
export interface Moment {
  device: number;
  at: number;
  until: number | null;
  category: string;
}

export type Sums = 'all' | 'thread' | 'stream' | 'counter';

export interface TraceState {
  window: Span | null;
  /** Whether the critical path is lit. */
  path: boolean;
  event: number | null;
  moment: Moment | null;
  area: Span | null;
  /** Which tracks the area is added up over. */
  sums: Sums;
  marks: number[];
  pinned: number[];
  folded: string[];
  /** Tracks of which all lanes are shown. */
  deep: number[];
  hidden: number[];
  order: number[];
  /** What is searched for; empty: nothing. */
  find: string;
  regex: boolean;
  color: ColorBy;
  clock: Clock;
}

const COLORS: readonly string[] = ['class', 'family', 'name', 'module', 'process_group'];
const SUMS: readonly string[] = ['thread', 'stream', 'counter'];
const CLOCKS: readonly string[] = ['trace', 'step', 'wall'];

const numbers = (text: string | undefined): number[] =>
  (text ?? '').split(',').filter(Boolean).map(Number).filter(Number.isFinite);

function span(text: string | undefined): Span | null {
  const match = /^(-?\d+)-(-?\d+)$/.exec(text ?? '');
  const [begin, end] = [Number(match?.[1]), Number(match?.[2])];
  return match && begin < end ? { begin, end } : null;
}

function moment(text: string | undefined): Moment | null {
  const match = /^(\d+):(-?\d+)(?:-(-?\d+):([a-z_]+))?$/.exec(text ?? '');
  return (
    match && {
      device: Number(match[1]),
      at: Number(match[2]),
      until: match[3] === undefined ? null : Number(match[3]),
      category: match[4] ?? '',
    }
  );
}

const writeMoment = ({ device, at, until, category }: Moment): string =>
  `${device}:${Math.floor(at)}${until === null ? '' : `-${Math.ceil(until)}:${category}`}`;

const write = ({ begin, end }: Span): string => `${Math.floor(begin)}-${Math.ceil(end)}`;

export function readTraceState(params: Record<string, string>): TraceState {
  const event = /^\d+$/.test(params.event ?? '') ? Number(params.event) : null;
  return {
    window: span(params.at),
    path: params.path === 'true',
    event,
    moment: event === null ? moment(params.moment) : null,
    area: span(params.area),
    sums: SUMS.includes(params.sums ?? '') ? (params.sums as Sums) : 'all',
    marks: numbers(params.marks),
    pinned: numbers(params.pins),
    folded: (params.folded ?? '').split(',').filter(Boolean),
    deep: numbers(params.deep),
    hidden: numbers(params.hidden),
    order: numbers(params.order),
    find: params.find ?? '',
    regex: params.regex === 'true',
    color: COLORS.includes(params.color ?? '') ? (params.color as ColorBy) : 'class',
    clock: CLOCKS.includes(params.clock ?? '') ? (params.clock as Clock) : 'trace',
  };
}

/** The parameters of a changed state; what is as it is by default stays out of the address. */
export function writeTraceState(
  params: Record<string, string>,
  change: Partial<TraceState>,
): Record<string, string> {
  const text: Record<string, string | undefined> = {};
  const list = (values: readonly (string | number)[]) => (values.length > 0 ? values.join(',') : undefined);
  for (const [key, value] of Object.entries(change) as [keyof TraceState, never][]) {
    if (key === 'window') {
      text.at = value && write(value as Span);
    } else if (key === 'path' || key === 'regex') {
      text[key] = value ? 'true' : undefined;
    } else if (key === 'area') {
      text.area = (value && write(value as Span)) ?? undefined;
    } else if (key === 'event') {
      text.event = value === null ? undefined : String(value);
    } else if (key === 'moment') {
      text.moment = (value && writeMoment(value as Moment)) ?? undefined;
    } else if (key === 'marks') {
      text.marks = list((value as number[]).map(Math.round));
    } else if (key === 'find') {
      text.find = value;
    } else if (key === 'pinned') {
      text.pins = list(value);
    } else if (key === 'sums') {
      text.sums = value === 'all' ? undefined : value;
    } else if (key === 'color') {
      text.color = value === 'class' ? undefined : value;
    } else if (key === 'clock') {
      text.clock = value === 'trace' ? undefined : value;
    } else {
      text[key] = list(value);
    }
  }
  const next = { ...params, ...text };
  return Object.fromEntries(
    Object.entries(next).filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
}

/** The list with the item, or without it if it was there. */
export function toggled<T>(list: readonly T[], item: T): T[] {
  return list.includes(item) ? list.filter(each => each !== item) : [...list, item];
}
