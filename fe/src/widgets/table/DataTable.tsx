// The table of every view: sorts, searches, hides columns, scrolls through hundreds of thousands of rows.
import { useTable, type ColumnVisibilityState, type ExpandedState } from '@tanstack/react-table';
import { useVirtualizer } from '@tanstack/react-virtual';
import {
  useCallback,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
} from 'react';
import { Button } from '../inputs/Button';
import { toCsv } from '../../base/csv';
import { formatCount, plural } from '../../base/format';
import { saveFile } from '../../base/browser/save';
import { useKept, useKeptScroll } from '../../state/kept';
import { readSetting, writeSetting } from '../../base/browser/settings';
import { Icon } from '../Icon';
import { ColumnMenu } from './ColumnMenu';
import { CellContent, csvCell, gridOf, isText, ROW, type Column } from './columns';
import { allText, definition, features } from './model';
import { matcher, type Search } from './search';
import { SearchBox } from './SearchBox';
import { TableHead, type Sort } from './TableHead';
import css from './Table.module.css';

export type { Sort };

interface Props<R> {
  /** Names the table in settings and in the file that is saved. */
  name: string;
  rows: R[];
  columns: Column<R>[];
  /** Distinct for every row. */
  rowKey: (row: R) => string;
  /** What a search looks at; by default every text column. */
  searchText?: (row: R) => string;
  selected?: string;
  onSelect?: (row: R | undefined) => void;
  /** A double click or Enter. */
  onOpen?: (row: R) => void;
  sort: Sort | undefined;
  onSort: (sort: Sort | undefined) => void;
  search: Search;
  onSearch: (search: Search) => void;
  placeholder: string;
  /** Whether `f` jumps into the search. */
  hotkey?: boolean;
  /** Rows below a row; the table then is a tree. */
  childRows?: (row: R) => R[] | undefined;
  /** Keys of the rows that are open at first. */
  unfolded?: string[];
  /** Left of the search, right of it, below the rows. */
  before?: ReactNode;
  tools?: ReactNode;
  /** What stands below it; of the rows that pass the search, where it adds them up. */
  foot?: ReactNode | ((rows: R[]) => ReactNode);
  /** What is said where there is no row at all. */
  empty?: ReactNode;
  /** What a row is, and what several are if an s is not enough. */
  noun?: string;
  many?: string;
}

export function DataTable<R extends object>(props: Props<R>) {
  const { name, rows, columns, rowKey, sort, onSort, search, onSearch, selected, onSelect, onOpen } = props;
  const scroller = useRef<HTMLDivElement>(null);
  useKeptScroll(scroller, name);
  const [visibility, setVisibility] = useState<ColumnVisibilityState>(() => ({
    ...Object.fromEntries(columns.filter(column => column.hidden).map(column => [column.id, false])),
    ...(readSetting(`columns.${name}`) as ColumnVisibilityState | undefined),
  }));
  const [expanded, setExpanded] = useKept<ExpandedState>(`rows of ${name}`, () =>
    Object.fromEntries((props.unfolded ?? []).map(key => [key, true])),
  );
  const definitions = useMemo(() => columns.map(column => definition(column)), [columns]);
  const textOf = useMemo(() => props.searchText ?? allText(columns), [props.searchText, columns]);
  const wanted = useMemo(() => matcher(search), [search]);
  const searching = search.text !== '' && wanted.error === undefined;
  const first = columns[0]!.id;
  const isTree = props.childRows !== undefined;
  // The table sorts and filters anew when these are other objects, so they must only change with what they say.
  const sorting = useMemo(() => (sort ? [{ id: sort.id, desc: sort.descending }] : []), [sort]);
  const globalFilterFn = useCallback(
    (row: { original: R }) => wanted.test(textOf(row.original)),
    [wanted, textOf],
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
      globalFilter: searching && isTree ? wanted : undefined,
    },
    onExpandedChange: setExpanded,
    globalFilterFn,
    getColumnCanGlobalFilter: column => column.id === first,
    filterFromLeafRows: true,
    enableMultiSort: false,
  });

  const sorted = table.getRowModel().rows;
  // A tree keeps the rows around a hit, which the table knows; a list is searched in the order it already has.
  const shown = useMemo(
    () => (searching && !isTree ? sorted.filter(row => wanted.test(textOf(row.original))) : sorted),
    [sorted, searching, isTree, wanted, textOf],
  );
  const visible = columns.filter(column => visibility[column.id] !== false);
  const grid = gridOf(visible);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 12,
  });

  const position = useMemo(
    () => (selected === undefined ? -1 : shown.findIndex(row => row.id === selected)),
    [shown, selected],
  );
  const move = (to: number) => {
    const row = shown[Math.min(Math.max(to, 0), shown.length - 1)];
    if (row && onSelect) {
      onSelect(row.original);
      virtual.scrollToIndex(row === shown[0] ? 0 : shown.indexOf(row), { align: 'auto' });
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / ROW) - 2);
    const targets: Record<string, number> = {
      ArrowDown: position + 1,
      ArrowUp: position < 0 ? 0 : position - 1,
      PageDown: position + page,
      PageUp: position - page,
      Home: 0,
      End: shown.length - 1,
    };
    const row = shown[position];
    if (event.key in targets) {
      event.preventDefault();
      move(targets[event.key]!);
    } else if (event.key === 'Enter' && row && onOpen) {
      event.preventDefault();
      onOpen(row.original);
    } else if (event.key === 'Escape' && row) {
      onSelect?.(undefined);
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
    // Of a tree all rows, folded or not, each below the one that it is a part of.
    type Row = (typeof shown)[number];
    const whole = (rows: readonly Row[]): Row[] => rows.flatMap(row => [row, ...whole(row.subRows)]);
    const saved = isTree ? whole(table.getPreExpandedRowModel().rows) : shown;
    const body = saved.map(row => visible.map(column => csvCell(column.value(row.original))));
    saveFile(
      `${name}.csv`,
      toCsv(
        visible.map(column => column.id),
        body,
      ),
      'text/csv',
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
              toggle: on => {
                const next = { ...visibility, [column.id]: on };
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
            onSelect?.(row.id === selected ? undefined : row.original);
          }
        }}
        onDoubleClick={event => {
          const row = rowAt(event);
          if (row) {
            onSelect?.(row.original);
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
                        className={`${css.twist} ${row.getIsExpanded() ? css.open : ''}`}
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
        </div>
        {shown.length === 0 && (
          <p className={css.empty} data-part="table-empty">
            {rows.length === 0 ? (
              (props.empty ?? 'There is nothing to show.')
            ) : (
              <>
                Nothing matches “{search.text}”.{' '}
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
          {plural(rows.length, props.noun ?? 'row', props.many)}
        </span>
        {foot && <span>{foot}</span>}
      </div>
    </div>
  );
}

const rowId = (table: string, key: string): string => `${table}-${key}`;
