// What the kernel table says in words, and how its rows are named in the address.
import type { KernelRow, KernelsPayload } from '../../api/types';
import { formatCount, formatDuration, formatRatio } from '../../base/format';
import { spokenKernelName } from '../../base/kernelName';

/** Distinct for every row: its name, and how it was launched where the rows are grouped by that. */
export function rowKey(row: KernelRow, byLaunch: boolean): string {
  if (!byLaunch) {
    return row.name;
  }
  return [row.name, row.operator, row.grid, row.block, row.registers, row.shared_memory].join(' | ');
}

export interface Sentence {
  mark: string;
  after: string;
  why: string;
}

export function sentence(payload: KernelsPayload): Sentence | null {
  const top = payload.rows[0];
  if (!top || payload.total_ns === 0) {
    return null;
  }
  const { used_ns, unknown_ns } = payload.tensor_cores;
  const known = unknown_ns === 0;
  const cores =
    used_ns > 0 || known
      ? `; ${known ? '' : 'at least '}${formatRatio(used_ns / payload.total_ns)} of it runs on Tensor Cores`
      : '';
  return {
    mark: spokenKernelName(top.name),
    after: ` takes ${formatRatio(top.total_ns / payload.total_ns)} of the kernel time${cores}.`,
    why: `${formatDuration(payload.total_ns)} in ${formatCount(payload.calls)} launches of ${formatCount(
      new Set(payload.rows.map(row => row.name)).size,
    )} kernels`,
  };
}
