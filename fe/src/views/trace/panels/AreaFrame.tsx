import { useState, type ReactNode } from 'react';
import { formatDuration, plural } from '../../../base/format';
import { classColor } from '../../../timeline/draw/colors';
import type { Column } from '../../../widgets/table/columns';
import { DataTable, type Sort } from '../../../widgets/table/DataTable';
import type { Search } from '../../../widgets/table/search';
import { PanelHead } from './PanelHead';
import css from './AreaFrame.module.css';

interface Named {
  name: string;
  /** Where several have the same name. */
  key?: string;
}

interface Props<R extends Named> {
  /** What the table is called, also in its file. */
  name: string;
  /** ns of the selected window. */
  length: number;
  from: string;
  summary: ReactNode;
  /** Which kind of track is added up. */
  choice?: ReactNode;
  /** What the rows are, if not slices by name. */
  noun?: string;
  rows: R[];
  /** Made anew only when they differ. */
  columns: Column<R>[];
  /** The column that the rows are sorted by at first. */
  first: string;
  /** How many names there are, which may be more than rows. */
  names: number;
  /** What a filter of the rows looks into, if not the name alone. */
  searchText?: (row: R) => string;
  /** What stands before the filter, and may set it. */
  before?: (search: Search, setSearch: (search: Search) => void) => ReactNode;
  /** The slice that a row leads to. */
  eventOf: (row: R) => number | null;
  onEvent: (event: number) => void;
  onZoom: () => void;
  onClose: () => void;
}

/** The totals of a selected window by name, of one trace or of several. */
export function AreaFrame<R extends Named>(props: Props<R>) {
  const {
    name,
    length,
    from,
    summary,
    choice,
    noun = 'name',
    rows,
    columns,
    first,
    names,
    searchText,
    before,
  } = props;
  const { eventOf, onEvent, onZoom, onClose } = props;
  const [sort, setSort] = useState<Sort | undefined>({ id: first, descending: true });
  const [search, setSearch] = useState<Search>({ text: '', regex: false });
  const open = (row: R | undefined) => {
    const event = row ? eventOf(row) : null;
    if (event !== null) {
      onEvent(event);
    }
  };
  return (
    <section className={css.area} data-part="selected-area" aria-label="Selected window">
      <PanelHead
        title={
          <>
            Selected {formatDuration(length)} <span className="dim">from {from}</span>
          </>
        }
        actions={choice}
        onZoom={onZoom}
        onClose={onClose}
      />
      <p className={css.devices} data-part="area-devices">
        {summary}
      </p>
      <DataTable
        name={name}
        rows={rows}
        columns={columns}
        rowKey={row => row.key ?? row.name}
        sort={sort}
        onSort={setSort}
        search={search}
        onSearch={setSearch}
        {...(searchText && { searchText })}
        before={before?.(search, setSearch)}
        hotkey={false}
        placeholder={`Filter ${plural(names, noun)}`}
        onOpen={open}
        onSelect={open}
        noun={noun}
        empty="No slices in this selection."
      />
    </section>
  );
}

/** The column of the names; `of` says what is shown of a row, and its category. */
export const nameColumn = <R extends Named>(
  of: (row: R) => { short: string; category: string },
): Column<R> => ({
  id: 'name',
  title: 'Name',
  kind: 'text',
  value: row => row.name,
  render: row => {
    const { short, category } = of(row);
    return (
      <span className="clip" title={row.name}>
        <i className="dot" style={{ background: classColor(category) }} /> {short}
      </span>
    );
  },
});
