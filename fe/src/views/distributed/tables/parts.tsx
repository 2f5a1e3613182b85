// Cells and columns that the tables of the job share.
import type { DistributedPayload } from '../../../api/types';
import { formatDuration } from '../../../base/format';
import type { Column } from '../../../widgets/table/columns';
import { rowNoun } from '../select';
import css from './parts.module.css';

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

function Rate({ value, least }: { value: number; least: boolean }) {
  return (
    <span title={least ? 'At least: the time includes waiting for other ranks.' : undefined}>
      {least && '≥ '}
      {(value / 1e9).toPrecision(3)} <span className="unit">GB/s</span>
    </span>
  );
}

/** The column of ranks; of workers if the rank of any is unknown. */
export function rankColumn<R extends { rank: number | null; worker: string }>(
  payload: DistributedPayload,
): Column<R> {
  return rowNoun(payload) === 'rank'
    ? {
        id: 'rank',
        title: 'Rank',
        kind: 'number',
        width: 72,
        value: row => row.rank,
        render: row => <span title={row.worker}>{row.rank}</span>,
      }
    : { id: 'rank', title: 'Worker', kind: 'text', width: 120, value: row => row.worker };
}

/** Bytes on the busiest link over the time of collectives. */
export function bandwidthColumn<R extends { bus_bandwidth: number | null; lower_bound: boolean }>(
  payload: DistributedPayload,
): Column<R> {
  return {
    id: 'bus_bandwidth',
    title: 'Bus bandwidth',
    kind: 'rate',
    width: 124,
    value: row => row.bus_bandwidth,
    term: 'bus_bandwidth',
    reason: payload.reasons.bus_bandwidth,
    render: row => <Rate value={row.bus_bandwidth!} least={row.lower_bound} />,
  };
}
