// Rows of the Diff tables, and where its bars lead.
import type { DiffChange, DiffFamily, DiffKernel, DiffOperator, DiffPart } from '../../api/types';

export type TimeOf = 'host' | 'device';
export type Metric = 'host_self' | 'host_total' | 'device_self' | 'device_total';

export const METRICS: readonly (readonly [Metric, string])[] = [
  ['host_self', 'Host self'],
  ['host_total', 'Host total'],
  ['device_self', 'Device self'],
  ['device_total', 'Device total'],
];

/** A row of any table: a name, its calls, and one time on both sides. */
export interface DiffRow {
  key: string;
  name: string;
  renamed: string | null;
  /** Short names of kernels, shown instead of the long ones. */
  short?: { name: string; renamed: string | null };
  /** Kernel family. */
  family?: string;
  status: DiffOperator['status'];
  calls: DiffOperator['calls'];
  change: DiffChange;
  /** FLOPs and FLOP/s of the calls whose FLOPs are known. */
  work?: DiffOperator['work'];
  /** The part to open, or the events to show. */
  path?: string;
  parts?: number;
  events?: { base: number | null; candidate: number | null };
}

export const operatorRows = (rows: readonly DiffOperator[], metric: Metric): DiffRow[] =>
  rows.map(row => ({
    key: `${row.status}/${row.name}/${row.candidate_name}`,
    name: row.name,
    renamed: row.candidate_name,
    status: row.status,
    calls: row.calls,
    change: row[metric],
    work: row.work,
  }));

export const familyRows = (rows: readonly DiffFamily[]): DiffRow[] =>
  rows.map(row => ({
    key: row.name,
    name: row.name,
    renamed: null,
    family: row.name,
    status: row.status,
    calls: row.calls,
    change: row.total,
  }));

export const kernelRows = (rows: readonly DiffKernel[]): DiffRow[] =>
  rows.map(row => ({
    key: `${row.status}/${row.name}/${row.candidate_name}`,
    name: row.name,
    renamed: row.candidate_name,
    short: { name: row.short_name, renamed: row.short_candidate_name },
    family: row.family,
    status: row.status,
    calls: row.calls,
    change: row.total,
  }));

export const partRows = (rows: readonly DiffPart[], time: TimeOf): DiffRow[] =>
  rows.map(row => ({
    key: row.path,
    name: row.name,
    renamed: row.candidate_name,
    short: { name: row.short_name, renamed: row.short_candidate_name },
    status: row.status,
    calls: row.calls,
    change: row[time],
    path: row.path,
    parts: row.parts,
    events: { base: row.base_event, candidate: row.candidate_event },
  }));

export const isSignificant = (change: DiffChange): boolean =>
  change.verdict === 'slower' || change.verdict === 'faster';

/** Whether only the base has a row, so that it opens there. */
export const isOnlyInBase = (row: Pick<DiffRow, 'status' | 'calls'>): boolean =>
  row.status === 'removed' ||
  row.status === 'moved_out' ||
  (row.status === 'not_recorded' && row.calls.candidate === null);

/** Whether a part opens something: parts of its own, or its first call on the timeline. */
export const hasSomethingToOpen = (part: DiffPart): boolean =>
  part.parts > 0 || part.candidate_event !== null || part.base_event !== null;

/** Parameters that show the table rows that make up a bar of the waterfall. */
export function barTableParams(bar: string, hasDevice: boolean): Record<string, string> {
  if (bar === 'runtime' || bar === 'cpu_exec') {
    return { table: '' };
  }
  if (hasDevice && bar === 'kernel') {
    return { table: 'kernels' };
  }
  const family = FAMILY_OF_BAR[bar];
  if (hasDevice && family !== undefined) {
    return { table: 'families', q: family };
  }
  return { table: 'parts', ...(bar === 'device' && { time: 'device' }) };
}

/** Family of device work by the bar that shows its time. */
const FAMILY_OF_BAR: Record<string, string | undefined> = {
  communication: 'communication',
  memcpy: 'memory',
  memset: 'memory',
};
