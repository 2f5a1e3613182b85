// What is said of a slice's arguments: those that mean something to people with their unit, the others as recorded.
import { formatBytes, formatCount, formatNumber, formatRatio } from '../../../base/format';

export type Fact = readonly [title: string, value: string, exact: string];

type Say = (value: number) => string;

const percent: Say = value => formatRatio(value / 100);
const KNOWN: Record<string, readonly [title: string, say?: Say]> = {
  'shared memory': ['Shared memory', formatBytes],
  bytes: ['Size', formatBytes],
  grid: ['Grid'],
  block: ['Block'],
  'registers per thread': ['Registers per thread'],
  'blocks per sm': ['Blocks per SM'],
  'warps per sm': ['Warps per SM'],
  'est. achieved occupancy %': ['Est. achieved occupancy', percent],
  'memory bandwidth (gb/s)': ['Bandwidth', value => `${formatNumber(value)} GB/s`],
  'input dims': ['Input shapes'],
  'input type': ['Input types'],
  'concrete inputs': ['Inputs'],
  'in msg nelems': ['Elements in'],
  'out msg nelems': ['Elements out'],
};

/** What joins events and says nothing else, and what is shown elsewhere. */
const ASIDE =
  /^(call stack|external id|correlation|context|queued|cbid|ev idx|record function id|fwd thread id|sequence number|python (id|parent id|module id|thread)|input strides|device|stream|kernel_(file|hash|kwargs)|seq)$/i;

export function facts(args: Readonly<Record<string, unknown>>): { curated: Fact[]; all: Fact[] } {
  const all = Object.entries(args).filter(([key]) => key !== 'Call stack');
  const exact = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
  return {
    curated: all
      .filter(([key]) => !ASIDE.test(key))
      .map(([key, value]) => {
        const [title, say] = KNOWN[key.toLowerCase()] ?? [key];
        return [title, say && typeof value === 'number' ? say(value) : valueText(key, value), exact(value)];
      }),
    all: all.map(([key, value]) => [key, valueText(key, value), exact(value)]),
  };
}

/** Numbers that name something rather than count it: their digits stay together. */
const NAMES = /\b(id|idx|number|correlation|device|stream|context|rank|pid|tid|seq|port)\b/i;

function valueText(key: string, value: unknown): string {
  if (typeof value === 'number') {
    const whole = NAMES.test(key) ? String(value) : formatCount(value);
    return Number.isInteger(value) ? whole : formatNumber(value, 4);
  }
  return Array.isArray(value) ? listText(value) : typeof value === 'string' ? value : JSON.stringify(value);
}

/** Shapes as 8 × 64 × 32, several beside each other; what an input does not have as a dash. */
function listText(values: readonly unknown[]): string {
  if (values.length > 0 && values.every(each => typeof each === 'number')) {
    return values.join(' × ');
  }
  const parts = values.map(each =>
    Array.isArray(each) ? listText(each) : typeof each === 'string' ? each : JSON.stringify(each),
  );
  return parts.map(part => part || '–').join(', ');
}
