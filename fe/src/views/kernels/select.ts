// How the rows of the kernel table are named in the address.
import type { KernelRow, KernelsPayload } from '../../api/types';
import { formatDuration, plural } from '../../base/format';

/** Distinct for every row: its name, and how it was launched where the rows are grouped by that. */
export function kernelKey(row: KernelRow, byLaunch: boolean): string {
  if (!byLaunch) {
    return row.name;
  }
  return [row.name, row.operator, row.grid, row.block, row.registers, row.shared_memory].join(' | ');
}

/** Return what a row is called, singular and plural. */
export function kernelNoun({ group_by }: KernelsPayload): [string, string] {
  return group_by === 'launch'
    ? ['row', 'rows']
    : group_by === 'family'
      ? ['family', 'families']
      : ['kernel', 'kernels'];
}

/** Return the rows that a slice of the Tensor Cores pie counts; all of them without a choice. */
export function filterByCores(rows: KernelRow[], cores: string | undefined): KernelRow[] {
  const chosen = USES_CORES_BY_PARAM.get(cores ?? '');
  return chosen === undefined ? rows : rows.filter(row => row.tc_used === chosen);
}

const USES_CORES_BY_PARAM = new Map<string, boolean | null>([
  ['used', true],
  ['not used', false],
  ['unknown', null],
]);

/** Return the time and the launches of all rows. */
export function totalText(payload: KernelsPayload): string {
  const names = new Set(payload.rows.map(row => row.name)).size;
  const what = payload.group_by === 'family' ? plural(names, 'family', 'families') : plural(names, 'kernel');
  return `${formatDuration(payload.total_ns)} in ${plural(payload.calls, 'launch', 'launches')} of ${what}`;
}

/** Where all launches of a row come from: the operator, then the line or the module; null if nothing is known. */
export function originText(row: KernelRow): string | null {
  if (row.origin_places > 1) {
    return [row.origin_operator, plural(row.origin_places, 'place')].filter(Boolean).join(' · ');
  }
  const parts = [row.origin_operator, row.origin_line ?? row.origin_module].filter(part => part !== null);
  return parts.length > 0 ? parts.join(' · ') : null;
}
