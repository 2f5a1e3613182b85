// What the tables of the job share.
import type { ReactNode } from 'react';
import type { Distributed } from '../../../api/types';
import { formatDuration } from '../../../base/format';
import { groupLabel } from '../select';
import css from './parts.module.css';

export interface TableProps {
  payload: Distributed;
  before: ReactNode;
}

/** A stacked bar: moving data, then waiting. */
export function TransferBar({
  transfer,
  waiting,
  most,
}: {
  transfer: number | null;
  waiting: number | null;
  most: number;
}) {
  if (transfer === null || waiting === null) {
    return <span className="dim">not compared</span>;
  }
  return (
    <span
      className={css.bar}
      title={`transfer ${formatDuration(transfer)}, waiting for others ${formatDuration(waiting)}`}
    >
      <i className={css.transfer} style={{ width: `${(transfer / most) * 100}%` }} />
      <i className={css.waits} style={{ width: `${(waiting / most) * 100}%` }} />
    </span>
  );
}

export function Rate({ value, least }: { value: number; least: boolean }) {
  return (
    <span title={least ? 'At least: the time includes waiting for other ranks.' : undefined}>
      {least && '≥ '}
      {(value / 1e9).toPrecision(3)} <span className="unit">GB/s</span>
    </span>
  );
}

export const groupName = (payload: Distributed, id: number): string => {
  const group = payload.groups.find(each => each.id === id);
  return group ? groupLabel(group) : `group ${id}`;
};
