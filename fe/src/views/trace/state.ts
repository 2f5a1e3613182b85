// State of the timeline in the address: parse it, and write changes.
import type { Span } from '../../timeline/tiles/store';
import type { ColorBy } from '../../timeline/draw/colors';
import type { Clock } from '../../base/ticks';

/** A part of a device's time: the longest of its category from `at` to `until`, or the part at `at`. */
export interface Moment {
  device: number;
  at: number;
  until: number | null;
  category: string;
}

export type SummedKind = 'all' | 'thread' | 'stream' | 'counter';

export interface TraceState {
  window: Span | null;
  /** Whether the critical path is highlighted. */
  path: boolean;
  event: number | null;
  moment: Moment | null;
  area: Span | null;
  /** Which tracks the selected area sums up. */
  sums: SummedKind;
  marks: number[];
  pinned: number[];
  folded: string[];
  /** Tracks of which all lanes are shown. */
  deep: number[];
  hidden: number[];
  order: number[];
  /** The search query; empty if there is none. */
  find: string;
  regex: boolean;
  color: ColorBy;
  clock: Clock;
}

const COLORS: readonly string[] = ['class', 'family', 'name', 'module', 'process_group'];
const SUMS: readonly string[] = ['thread', 'stream', 'counter'];
const CLOCKS: readonly string[] = ['trace', 'step', 'wall'];

const parseNumbers = (text: string | undefined): number[] =>
  (text ?? '').split(',').filter(Boolean).map(Number).filter(Number.isFinite);

function parseSpan(text: string | undefined): Span | null {
  const match = /^(-?\d+)-(-?\d+)$/.exec(text ?? '');
  const [begin, end] = [Number(match?.[1]), Number(match?.[2])];
  return match && begin < end ? { begin, end } : null;
}

function parseMoment(text: string | undefined): Moment | null {
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

const formatMoment = ({ device, at, until, category }: Moment): string =>
  `${device}:${Math.floor(at)}${until === null ? '' : `-${Math.ceil(until)}:${category}`}`;

const formatSpan = ({ begin, end }: Span): string => `${Math.floor(begin)}-${Math.ceil(end)}`;

export function readTraceState(params: Record<string, string>): TraceState {
  const event = /^\d+$/.test(params.event ?? '') ? Number(params.event) : null;
  return {
    window: parseSpan(params.at),
    path: params.path === 'true',
    event,
    moment: event === null ? parseMoment(params.moment) : null,
    area: parseSpan(params.area),
    sums: SUMS.includes(params.sums ?? '') ? (params.sums as SummedKind) : 'all',
    marks: parseNumbers(params.marks),
    pinned: parseNumbers(params.pins),
    folded: (params.folded ?? '').split(',').filter(Boolean),
    deep: parseNumbers(params.deep),
    hidden: parseNumbers(params.hidden),
    order: parseNumbers(params.order),
    find: params.find ?? '',
    regex: params.regex === 'true',
    color: COLORS.includes(params.color ?? '') ? (params.color as ColorBy) : 'class',
    clock: CLOCKS.includes(params.clock ?? '') ? (params.clock as Clock) : 'trace',
  };
}

/** Return the parameters after `change`; default values stay out of the address. */
export function writeTraceState(
  params: Record<string, string>,
  change: Partial<TraceState>,
): Record<string, string> {
  const text: Record<string, string | undefined> = {};
  const list = (values: readonly (string | number)[]) => (values.length > 0 ? values.join(',') : undefined);
  for (const [key, value] of Object.entries(change) as [keyof TraceState, never][]) {
    if (key === 'window') {
      text.at = value && formatSpan(value as Span);
    } else if (key === 'path' || key === 'regex') {
      text[key] = value ? 'true' : undefined;
    } else if (key === 'area') {
      text.area = (value && formatSpan(value as Span)) ?? undefined;
    } else if (key === 'event') {
      text.event = value === null ? undefined : String(value);
    } else if (key === 'moment') {
      text.moment = (value && formatMoment(value as Moment)) ?? undefined;
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

/** Return the list without the item if it has it, or with it. */
export function toggleItem<T>(list: readonly T[], item: T): T[] {
  return list.includes(item) ? list.filter(each => each !== item) : [...list, item];
}
