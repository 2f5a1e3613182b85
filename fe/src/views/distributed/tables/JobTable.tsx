// A table of the job: all rows if the payload has them, else page by page from the server.
import { useMemo, type ReactNode } from 'react';
import type { DistributedPayload, Selectors } from '../../../api/types';
import { usePages } from '../../../state/pages';
import { useTableState } from '../../../state/table';
import type { Column } from '../../../widgets/table/columns';
import { DataTable } from '../../../widgets/table/DataTable';
import { ROWS_PER_PAGE, PagedTable } from '../../../widgets/table/PagedTable';
import { isLarge } from '../select';

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
  unsorted?: ReadonlySet<string>;
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
      unsortable={props.unsorted}
      search={search.text}
      onSearch={text => onSearch({ text, regex: false })}
      noun={`${props.noun}s`}
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
}: Props<R>) => ({
  name,
  columns,
  placeholder,
  before,
  empty,
  foot,
  onOpen,
});
