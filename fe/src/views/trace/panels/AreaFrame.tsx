import { type ReactNode, useState } from 'react';
import type { TracePayload } from '../../../api/types';
import { formatDuration, plural } from '../../../base/format';
import type { TableSearch, TableSort } from '../../../state/table';
import { classColor } from '../../../timeline/draw/colors';
import { Choice } from '../../../widgets/inputs/Choice';
import { Name } from '../../../widgets/Name';
import { DataTable } from '../../../widgets/table/DataTable';
import type { Column } from '../../../widgets/table/columns';
import type { SummedKind } from '../state';
import css from './AreaFrame.module.css';
import { PanelHead } from './PanelHead';

interface Named {
  name: string;
  /** Unique key where several rows share a name. */
  key?: string;
}

interface AreaFrameProps<R extends Named> {
  /** Name of the table and of its exported file. */
  name: string;
  /** Length of the selected window, ns. */
  length: number;
  from: string;
  summary: ReactNode;
  /** The choice of tracks to sum up. */
  choice?: ReactNode;
  /** What a row is, unless it is a name of slices. */
  noun?: string;
  rows: R[];
  /** The same array while the columns are unchanged. */
  columns: Column<R>[];
  /** The column that sorts the rows initially. */
  first: string;
  /** Number of names; there may be fewer rows. */
  names: number;
  /** Text that the filter searches; the name by default. */
  searchText?: (row: R) => string;
  /** Rendered before the filter; may set it. */
  before?: (search: TableSearch, setSearch: (search: TableSearch) => void) => ReactNode;
  /** The slice to select when a row is opened. */
  eventOf: (row: R) => number | null;
  onEvent: (event: number) => void;
  onZoom: () => void;
  onClose: () => void;
}

/** Totals of the selected window by name, for one trace or several ranks. */
export function AreaFrame<R extends Named>(props: AreaFrameProps<R>) {
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
  const [sort, setSort] = useState<TableSort | undefined>({ id: first, descending: true });
  const [search, setSearch] = useState<TableSearch>({ text: '', regex: false });
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
        empty="These tracks have no slices in the selected time range. Select a longer one."
      />
    </section>
  );
}

/** Return the name column; `of` returns a row's short name and category. */
export const nameColumn = <R extends Named>(
  of: (row: R) => { short: string; category: string },
): Column<R> => ({
  id: 'name',
  title: 'Name',
  kind: 'text',
  value: row => row.name,
  shownName: row => of(row).short,
  render: row => {
    const { short, category } = of(row);
    return (
      <>
        <i className="dot" style={{ background: classColor(category) }} />
        <Name text={short} title={row.name} />
      </>
    );
  },
});

type Option = readonly [SummedKind, string];

export const SLICE_KINDS: readonly Option[] = [
  ['all', 'All'],
  ['thread', 'Operators'],
  ['stream', 'Kernels'],
];
export const ALL_KINDS: readonly Option[] = [...SLICE_KINDS, ['counter', 'Counters']];

interface KindChoiceProps {
  payload: TracePayload;
  options: readonly Option[];
  chosen: SummedKind;
  onPick: (sums: SummedKind) => void;
}

/** The choice of which kind of track the selection sums up; kinds without tracks are left out. */
export const KindChoice = ({ payload, options, chosen, onPick }: KindChoiceProps) => (
  <Choice
    name="Tracks to summarize"
    value={chosen}
    options={options.filter(([sums]) => sums === 'all' || payload.tracks.some(({ kind }) => kind === sums))}
    onPick={onPick}
  />
);
