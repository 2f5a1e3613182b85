// A table of the job, which has all rows from the payload or pages from the server, and the columns that these tables share.
import { useMemo, type ReactNode } from 'react';
import type { DistributedPayload, Selectors } from '../../../api/types';
import { formatDuration, rateParts } from '../../../base/format';
import { usePages } from '../../../state/pages';
import { useTableState } from '../../../state/table';
import type { Column } from '../../../widgets/table/columns';
import { DataTable } from '../../../widgets/table/DataTable';
import { ROWS_PER_PAGE, PagedTable } from '../../../widgets/table/PagedTable';
import { isLarge, rankNoun } from '../select';
import css from './JobTable.module.css';

export interface TableProps {
  payload: DistributedPayload;
  selectors: Selectors;
  before: ReactNode;
}

interface Props<R extends object> extends TableProps {
  /** The part of the view that has the rows page by page. */
  part: string;
  name: string;
  rows: R[];
  columns: Column<R>[];
  rowKey: (row: R) => string;
  searchText?: (row: R) => string;
  /** Columns that the server does not sort by. */
  unsortable?: ReadonlySet<string>;
  placeholder: string;
  noun: string;
  empty: string;
  foot?: ReactNode;
  onOpen?: (row: R) => void;
}

export function JobTable<R extends object>(props: Props<R>) {
  return isLarge(props.payload) ? <PagedJobTable {...props} /> : <CompleteTable {...props} />;
}

function CompleteTable<R extends object>(props: Props<R>) {
  return (
    <DataTable<R>
      {...commonProps(props)}
      {...useTableState()}
      rows={props.rows}
      rowKey={props.rowKey}
      searchText={props.searchText}
      noun={props.noun}
    />
  );
}

function PagedJobTable<R extends object>(props: Props<R>) {
  const { sort = { id: '', descending: false }, onSort, search, onSearch } = useTableState();
  const params = useMemo<Record<string, string>>(
    () => ({
      ...(sort.id && { sort: sort.id, descending: String(sort.descending) }),
      ...(search.text && { search: search.text }),
    }),
    [sort.id, sort.descending, search.text],
  );
  const pages = usePages<{ rows: R[]; total: number }>(props.part, props.selectors, params, ROWS_PER_PAGE);
  return (
    <PagedTable<R>
      {...commonProps(props)}
      total={pages.first?.total}
      page={index => pages.page(index)?.rows}
      onPages={pages.setPages}
      fetchAll={async () => (await pages.fetchRows(0)).rows}
      sort={sort}
      onSort={onSort}
      unsortable={props.unsortable}
      search={search.text}
      onSearch={text => onSearch({ text, regex: false })}
      noun={props.noun}
      {...(search.text === '' ? {} : { empty: `No ${props.noun} matches “${search.text}”.` })}
    />
  );
}

/** Props that both kinds of table take. */
const commonProps = <R extends object>({
  name,
  columns,
  placeholder,
  before,
  empty,
  foot,
  onOpen,
  payload,
}: Props<R>) => ({
  name,
  columns,
  placeholder,
  before,
  // What the traces lack is known once all have been read.
  empty: payload.problems.some(problem => problem.kind === 'loading') ? 'Reading the traces…' : empty,
  foot,
  onOpen,
});

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
  const { value: text, unit } = rateParts(value);
  return (
    <span title={least ? 'At least: the time includes waiting for other ranks.' : undefined}>
      {least && '≥ '}
      {text} <span className="unit">{unit}</span>
    </span>
  );
}

/** Return the column of ranks; of workers if the rank of any is unknown. */
export function rankColumn<R extends { rank: number | null; worker: string }>(
  payload: DistributedPayload,
): Column<R> {
  return rankNoun(payload) === 'rank'
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
