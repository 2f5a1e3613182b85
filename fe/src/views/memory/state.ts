// What of the Memory page is in the address.

export interface TimeRange {
  begin: number;
  end: number;
}

export type GroupBy = 'operator' | 'module' | 'stack' | 'size';
type TableName = 'blocks' | 'operators' | 'growth';

export interface MemoryState {
  device: string;
  /** The instant whose live set is shown; null: the peak. */
  at: number | null;
  /** Filters the tables and the live set. */
  range: TimeRange | null;
  /** What the curve shows; null: all. */
  window: TimeRange | null;
  group: GroupBy;
  table: TableName;
}

/** `<begin>-<end>` in ns as the address has it; null for anything else. */
export function rangeOf(text: string | undefined): TimeRange | null {
  const match = /^(-?\d+)-(-?\d+)$/.exec(text ?? '');
  const [begin, end] = [Number(match?.[1]), Number(match?.[2])];
  return match && begin < end ? { begin, end } : null;
}

/** A range as the parameters of a part. */
export const limits = (range: TimeRange | null): Record<string, string> =>
  range ? { begin: String(range.begin), end: String(range.end) } : {};

const oneOf = <T extends string>(text: string | undefined, options: readonly T[]): T =>
  options.find(option => option === text) ?? options[0]!;

export const BLOCK_GROUPINGS = ['operator', 'module', 'stack', 'size'] as const;
const TABLE_NAMES = ['blocks', 'operators', 'growth'] as const;

export function readMemoryState(params: Record<string, string>, device: string): MemoryState {
  return {
    device: params.device ?? device,
    at: /^-?\d+$/.test(params.at ?? '') ? Number(params.at) : null,
    range: rangeOf(params.range),
    window: rangeOf(params.window),
    group: oneOf(params.group, BLOCK_GROUPINGS),
    table: oneOf(params.table, TABLE_NAMES),
  };
}

export function writeMemoryState(
  params: Record<string, string>,
  change: Partial<MemoryState>,
): Record<string, string> {
  const next = { ...params };
  for (const [key, value] of Object.entries(change)) {
    if (value === null) {
      delete next[key];
    } else if (typeof value === 'object') {
      next[key] = `${Math.round(value.begin)}-${Math.round(value.end)}`;
    } else {
      next[key] = typeof value === 'number' ? String(Math.round(value)) : value;
    }
  }
  return next;
}
