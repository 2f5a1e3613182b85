// The table of every view: sorts, searches, hides columns, and scrolls through hundreds of thousands of rows.
import {
  columnFilteringFeature,
  columnVisibilityFeature,
  createExpandedRowModel,
  createFilteredRowModel,
  createSortedRowModel,
  globalFilteringFeature,
  rowExpandingFeature,
  rowSortingFeature,
  tableFeatures,
  useTable,
  type ColumnDef,
  type ColumnVisibilityState,
  type ExpandedState,
} from '@tanstack/react-table';
import { useVirtualizer } from '@tanstack/react-virtual';
import {
  useCallback,
  useMemo,
  useRef,
  useState,
  type CSSProperties,
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
} from 'react';
import { readSetting, writeSetting } from '../../base/browser/settings';
import { formatCount, plural } from '../../base/format';
import { useRestoredState, useRestoredScroll } from '../../state/restored';
import type { TableSearch, TableSort } from '../../state/table';
import { Icon } from '../Icon';
import { Button } from '../inputs/Button';
import { Names } from '../Name';
import { CellContent, gridLayout, isText, namesOf, TABLE_ROW_HEIGHT, saveCsv, type Column } from './columns';
import { createMatcher } from './search';
import { SearchBox } from './SearchBox';
import { ColumnMenu, TableHead } from './TableHead';
import css from './Table.module.css';

const features = tableFeatures({
  columnFilteringFeature,
  columnVisibilityFeature,
  globalFilteringFeature,
  rowExpandingFeature,
  rowSortingFeature,
  expandedRowModel: createExpandedRowModel(),
  filteredRowModel: createFilteredRowModel(),
  sortedRowModel: createSortedRowModel(),
});

interface Props<R> {
  /** The name of the table in the settings and in saved files. */
  name: string;
  rows: R[];
  columns: Column<R>[];
  /** Return a key that is different for every row. */
  rowKey: (row: R) => string;
  /** Return the text that a search looks at; by default that of all text columns. */
  searchText?: (row: R) => string;
  selected?: string;
  /** A row was chosen, or none; without it the table keeps the chosen row to itself, so that the keys can open it. */
  onSelect?: (row: R | undefined) => void;
  /** A row was double-clicked, or Enter was pressed on it. */
  onOpen?: (row: R) => void;
  sort: TableSort | undefined;
  onSort: (sort: TableSort | undefined) => void;
  search: TableSearch;
  onSearch: (search: TableSearch) => void;
  placeholder: string;
  /** Whether `f` focuses the search. */
  hotkey?: boolean;
  /** Return the rows below a row, which makes the table a tree. */
  childRows?: (row: R) => R[] | undefined;
  /** Keys of the rows that are expanded at first. */
  initiallyExpanded?: string[];
  /** Drawn after the search field. */
  before?: ReactNode;
  /** Drawn before the buttons at the right end. */
  tools?: ReactNode;
  /** Drawn below the table; a function gets the rows that match the search. */
  foot?: ReactNode | ((rows: R[]) => ReactNode);
  /** Drawn where the table has no rows. */
  empty?: ReactNode;
  /** What a row is, and its plural if that isn't formed with an s. */
  noun?: string;
  nounPlural?: string;
}

export function DataTable<R extends object>(props: Props<R>) {
  const { name, rows, columns, rowKey, sort, onSort, search, onSearch, onOpen } = props;
  const [ownSelection, setOwnSelection] = useState<string>();
  const selected = props.onSelect ? props.selected : ownSelection;
  const onSelect = props.onSelect ?? ((row: R | undefined) => setOwnSelection(row && rowKey(row)));
  const scroller = useRef<HTMLDivElement>(null);
  useRestoredScroll(scroller, name);
  const [visibility, setVisibility] = useState<ColumnVisibilityState>(() => ({
    ...Object.fromEntries(columns.filter(column => column.hidden).map(column => [column.id, false])),
    ...(readSetting(`columns.${name}`) as ColumnVisibilityState | undefined),
  }));
  const [expanded, setExpanded] = useRestoredState<ExpandedState>(`rows of ${name}`, () =>
    Object.fromEntries((props.initiallyExpanded ?? []).map(key => [key, true])),
  );
  const definitions = useMemo(() => columns.map(column => toColumnDef(column)), [columns]);
  const textOf = useMemo(() => props.searchText ?? textOfColumns(columns), [props.searchText, columns]);
  const matcher = useMemo(() => createMatcher(search), [search]);
  const searching = search.text !== '' && matcher.error === undefined;
  const first = columns[0]!.id;
  const isTree = props.childRows !== undefined;
  // A new object makes the table sort and filter again, so these are the same object while their content is the same.
  const sorting = useMemo(() => (sort ? [{ id: sort.id, desc: sort.descending }] : []), [sort]);
  const globalFilterFn = useCallback(
    (row: { original: R }) => matcher.test(textOf(row.original)),
    [matcher, textOf],
  );

  const table = useTable<typeof features, R>({
    features,
    data: rows,
    columns: definitions,
    getRowId: rowKey,
    getSubRows: props.childRows,
    state: {
      sorting,
      columnVisibility: visibility,
      expanded: searching && props.childRows ? true : expanded,
      globalFilter: searching && isTree ? matcher : undefined,
    },
    onExpandedChange: setExpanded,
    globalFilterFn,
    getColumnCanGlobalFilter: column => column.id === first,
    filterFromLeafRows: true,
    enableMultiSort: false,
    // By default the library folds all rows whenever the data is a new object, as it is after every answer.
    autoResetExpanded: false,
  });

  const sorted = table.getRowModel().rows;
  // In a tree, the library keeps the ancestors of matching rows; a list is filtered here in its sorted order.
  const shown = useMemo(
    () => (searching && !isTree ? sorted.filter(row => matcher.test(textOf(row.original))) : sorted),
    [sorted, searching, isTree, matcher, textOf],
  );
  const childRows = props.childRows;
  const names = useMemo(() => {
    const withChildren = (below: readonly R[]): R[] =>
      below.flatMap(row => [row, ...withChildren(childRows?.(row) ?? [])]);
    return namesOf(columns, childRows ? withChildren(rows) : rows);
  }, [columns, rows, childRows]);
  const visible = columns.filter(column => visibility[column.id] !== false);
  const grid = gridLayout(visible);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => TABLE_ROW_HEIGHT,
    overscan: 12,
  });

  const position = useMemo(
    () => (selected === undefined ? -1 : shown.findIndex(row => row.id === selected)),
    [shown, selected],
  );
  const move = (to: number) => {
    const row = shown[Math.min(Math.max(to, 0), shown.length - 1)];
    if (row) {
      onSelect(row.original);
      virtual.scrollToIndex(row === shown[0] ? 0 : shown.indexOf(row), { align: 'auto' });
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / TABLE_ROW_HEIGHT) - 2);
    const targets: Record<string, number> = {
      ArrowDown: position + 1,
      ArrowUp: position < 0 ? 0 : position - 1,
      PageDown: position + page,
      PageUp: position - page,
      Home: 0,
      End: shown.length - 1,
    };
    const row = shown[position];
    const isHere = event.target === event.currentTarget; // Enter on a title sorts
    if (event.key in targets) {
      event.preventDefault();
      move(targets[event.key]!);
    } else if (event.key === 'Enter' && isHere && row && onOpen) {
      event.preventDefault();
      onOpen(row.original);
    } else if (event.key === 'Escape' && row) {
      onSelect(undefined);
    } else if (event.key === 'ArrowRight' && row?.getCanExpand() && !row.getIsExpanded()) {
      event.preventDefault();
      row.toggleExpanded(true);
    } else if (event.key === 'ArrowLeft' && row?.getIsExpanded()) {
      event.preventDefault();
      row.toggleExpanded(false);
    }
  };
  const rowAt = (event: MouseEvent) => {
    const index = (event.target as Element).closest<HTMLElement>('[data-index]')?.dataset.index;
    return index === undefined ? undefined : shown[Number(index)];
  };
  const save = () => {
    // A tree is saved with all rows, expanded or not, each below its parent.
    type Row = (typeof shown)[number];
    const withDescendants = (rows: readonly Row[]): Row[] =>
      rows.flatMap(row => [row, ...withDescendants(row.subRows)]);
    const saved = isTree ? withDescendants(table.getPreExpandedRowModel().rows) : shown;
    saveCsv(
      name,
      visible,
      saved.map(row => row.original),
    );
  };
  const count = isTree ? rows.length : shown.length;
  const foot = typeof props.foot === 'function' ? props.foot(shown.map(row => row.original)) : props.foot;

  return (
    <div className={css.table} data-part="table">
      <div className={css.tools}>
        <SearchBox
          search={search}
          onSearch={onSearch}
          placeholder={props.placeholder}
          hotkey={props.hotkey}
        />
        {props.before}
        <span className={css.actions}>
          {props.tools}
          <ColumnMenu
            columns={columns.slice(1).map(column => ({
              id: column.id,
              title: column.title,
              shown: visibility[column.id] !== false,
              toggle: isShown => {
                const next = { ...visibility, [column.id]: isShown };
                setVisibility(next);
                writeSetting(`columns.${name}`, next);
              },
            }))}
          />
          <Button look="quiet" title="Save as CSV" aria-label="Save as CSV" onClick={save}>
            <Icon name="download" size={14} />
          </Button>
        </span>
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- it has one of two roles */}
      <div
        ref={scroller}
        className={css.scroller}
        style={{ '--rows-height': `${virtual.getTotalSize() + TABLE_ROW_HEIGHT}px` } as CSSProperties}
        data-part="table-scroll"
        role={props.childRows ? 'treegrid' : 'grid'}
        aria-rowcount={shown.length + 1}
        aria-label={name}
        aria-activedescendant={position >= 0 ? rowId(name, shown[position]!.id) : undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onClick={event => {
          const row = rowAt(event);
          if (row) {
            onSelect(row.id === selected ? undefined : row.original);
          }
        }}
        onDoubleClick={event => {
          const row = rowAt(event);
          if (row) {
            onSelect(row.original);
            onOpen?.(row.original);
          }
        }}
      >
        <TableHead columns={visible} sort={sort} onSort={onSort} {...grid} />
        <div
          className={css.body}
          data-part="table-body"
          style={{ height: virtual.getTotalSize(), minWidth: grid.minWidth }}
        >
          <Names of={names}>
            {virtual.getVirtualItems().map(item => {
              const row = shown[item.index]!;
              return (
                <div
                  key={row.id}
                  id={rowId(name, row.id)}
                  role="row"
                  aria-rowindex={item.index + 2}
                  aria-selected={row.id === selected}
                  aria-level={props.childRows ? row.depth + 1 : undefined}
                  aria-expanded={props.childRows && row.getCanExpand() ? row.getIsExpanded() : undefined}
                  className={`${css.row} ${row.id === selected ? css.selected : ''}`}
                  style={{
                    gridTemplateColumns: grid.gridTemplateColumns,
                    transform: `translateY(${item.start}px)`,
                  }}
                  data-index={item.index}
                >
                  {visible.map((column, i) => (
                    <span
                      key={column.id}
                      role="gridcell"
                      className={`${css.cell} ${isText(column.kind) ? '' : 'num'} ${column.kind === 'code' ? 'mono' : ''}`}
                      style={i === 0 && row.depth > 0 ? { paddingLeft: 16 * row.depth } : undefined}
                    >
                      {i === 0 && props.childRows && (
                        <Button
                          look="bare"
                          className={`${css.expander} ${row.getIsExpanded() ? css.open : ''}`}
                          style={row.getCanExpand() ? undefined : { visibility: 'hidden' }}
                          aria-label={row.getIsExpanded() ? 'Fold' : 'Unfold'}
                          tabIndex={-1}
                          onClick={event => {
                            event.stopPropagation();
                            row.toggleExpanded();
                          }}
                        >
                          <Icon name="right" size={12} />
                        </Button>
                      )}
                      <CellContent column={column} row={row.original} />
                    </span>
                  ))}
                </div>
              );
            })}
          </Names>
        </div>
        {shown.length === 0 && (
          <p className={css.empty} data-part="table-empty">
            {rows.length === 0 ? (
              (props.empty ?? 'Nothing to show.')
            ) : (
              <>
                No matches for “{search.text}”.{' '}
                <Button look="text" onClick={() => onSearch({ ...search, text: '' })}>
                  Show all
                </Button>
              </>
            )}
          </p>
        )}
      </div>
      <div className={css.foot} data-part="table-foot">
        <span aria-live="polite">
          {count < rows.length && !props.childRows && `${formatCount(count)} of `}
          {plural(rows.length, props.noun ?? 'row', props.nounPlural)}
        </span>
        {foot && <span>{foot}</span>}
      </div>
    </div>
  );
}

const rowId = (table: string, key: string): string => `${table}-${key}`;

/** Convert a column into one of the table library. */
function toColumnDef<R extends object>(column: Column<R>): ColumnDef<typeof features, R> {
  return {
    id: column.id,
    // Missing values go last, whichever way the column is sorted.
    accessorFn: row => column.value(row) ?? undefined,
    sortUndefined: 'last',
    sortFn: (a, b, id) => compareValues(a.getValue(id), b.getValue(id)),
  };
}

function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'string' && typeof b === 'string') {
    return a < b ? -1 : a > b ? 1 : 0;
  }
  return Number(a) - Number(b);
}

function textOfColumns<R>(columns: Column<R>[]): (row: R) => string {
  const textColumns = columns.filter(column => isText(column.kind));
  return row => textColumns.map(column => column.value(row) ?? '').join('\n');
}
