// A table whose rows stay on the server, which sorts and searches them; the page fetches only the rows in view.
import { useVirtualizer } from '@tanstack/react-virtual';
import {
  useEffect,
  useRef,
  useState,
  type CSSProperties,
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
} from 'react';
import { Button } from '../inputs/Button';
import { plural } from '../../base/format';
import { useRestoredScroll } from '../../state/restored';
import type { TableSort } from '../../state/table';
import { Icon } from '../Icon';
import { Names } from '../Name';
import { CellContent, gridLayout, isText, namesOf, TABLE_ROW_HEIGHT, saveCsv, type Column } from './columns';
import { SearchBox } from './SearchBox';
import { TableHead } from './TableHead';
import css from './Table.module.css';

/** Rows that one request asks for: a few screens. */
export const ROWS_PER_PAGE = 100;

interface Props<R> {
  name: string;
  columns: Column<R>[];
  /** Number of rows; undefined until the server has sent it. */
  total: number | undefined;
  /** Return the rows of a page, or undefined until they have arrived. */
  page: (index: number) => R[] | undefined;
  /** The pages in view have changed. */
  onPages: (pages: number[]) => void;
  /** Fetch all rows, to save them. */
  fetchAll: () => Promise<R[]>;
  sort: TableSort;
  onSort: (sort: TableSort) => void;
  unsortable?: ReadonlySet<string>;
  search: string;
  onSearch: (search: string) => void;
  placeholder: string;
  onOpen?: (row: R) => void;
  before?: ReactNode;
  foot?: ReactNode;
  empty: ReactNode;
  noun: string;
}

export function PagedTable<R>(props: Props<R>) {
  const { name, columns, total, page, onPages, sort, onSort, search, onSearch, onOpen } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [position, setPosition] = useState(-1);
  const [saving, setSaving] = useState(false);
  const count = total ?? 0;
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => TABLE_ROW_HEIGHT,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const first = Math.floor((items[0]?.index ?? 0) / ROWS_PER_PAGE);
  const last = Math.floor((items[items.length - 1]?.index ?? 0) / ROWS_PER_PAGE);
  useEffect(() => {
    onPages(Array.from({ length: last - first + 1 }, (_, i) => first + i));
  }, [first, last, onPages]);
  const order = `${sort.id} ${sort.descending} ${search}`;
  const drawnOrder = useRef(order);
  useEffect(() => {
    if (drawnOrder.current !== order) {
      drawnOrder.current = order;
      scroller.current?.scrollTo({ top: 0 });
      setPosition(-1);
    }
  }, [order]);
  // Nothing can be scrolled until the number of rows is known.
  useRestoredScroll(scroller, name, total !== undefined);

  const rowAt = (index: number): R | undefined =>
    page(Math.floor(index / ROWS_PER_PAGE))?.[index % ROWS_PER_PAGE];
  const rendered = items.map(item => rowAt(item.index)).filter(row => row !== undefined);
  const move = (to: number) => {
    const index = Math.min(Math.max(to, 0), count - 1);
    setPosition(index);
    virtual.scrollToIndex(index, { align: 'auto' });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const pageSize = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / TABLE_ROW_HEIGHT) - 2);
    const targets: Record<string, number> = {
      ArrowDown: position + 1,
      ArrowUp: Math.max(position - 1, 0),
      PageDown: position + pageSize,
      PageUp: position - pageSize,
      Home: 0,
      End: count - 1,
    };
    const row = rowAt(position);
    const isHere = event.target === event.currentTarget; // Enter on a title sorts
    if (event.key in targets && count > 0) {
      event.preventDefault();
      move(targets[event.key]!);
    } else if (event.key === 'Enter' && isHere && row) {
      onOpen?.(row);
    }
  };
  const indexOf = (event: MouseEvent) => {
    const index = (event.target as Element).closest<HTMLElement>('[data-index]')?.dataset.index;
    return index === undefined ? -1 : Number(index);
  };
  const save = async () => {
    setSaving(true);
    try {
      saveCsv(name, columns, await props.fetchAll());
    } finally {
      setSaving(false);
    }
  };
  const grid = gridLayout(columns);
  return (
    <div className={`${css.table} ${css.fixed}`} data-part="table">
      <div className={css.tools}>
        <SearchBox
          search={{ text: search, regex: false }}
          onSearch={next => onSearch(next.text)}
          placeholder={props.placeholder}
          plain
        />
        {props.before}
        <span className={css.actions}>
          <Button
            look="quiet"
            title="Save as CSV"
            aria-label="Save as CSV"
            disabled={saving || count === 0}
            onClick={() => void save()}
          >
            <Icon name="download" size={14} />
          </Button>
        </span>
      </div>
      {/* oxlint-disable-next-line jsx-a11y/interactive-supports-focus -- it has a tab stop */}
      <div
        ref={scroller}
        className={css.scroller}
        style={{ '--rows-height': `${virtual.getTotalSize() + TABLE_ROW_HEIGHT}px` } as CSSProperties}
        data-part="table-scroll"
        role="grid"
        aria-rowcount={count + 1}
        aria-label={name}
        aria-busy={total === undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onClick={event => setPosition(indexOf(event))}
        onDoubleClick={event => {
          const row = rowAt(indexOf(event));
          if (row) {
            onOpen?.(row);
          }
        }}
      >
        <TableHead
          columns={columns}
          sort={sort}
          onSort={next => onSort(next ?? { ...sort, descending: !sort.descending })}
          unsortable={props.unsortable}
          {...grid}
        />
        <div
          className={css.body}
          data-part="table-body"
          style={{ height: virtual.getTotalSize(), minWidth: grid.minWidth }}
        >
          <Names of={namesOf(columns, rendered)}>
            {items.map(item => {
              const row = rowAt(item.index);
              return (
                <div
                  key={item.index}
                  role="row"
                  aria-rowindex={item.index + 2}
                  aria-selected={item.index === position}
                  className={`${css.row} ${item.index === position ? css.selected : ''}`}
                  style={{
                    gridTemplateColumns: grid.gridTemplateColumns,
                    transform: `translateY(${item.start}px)`,
                  }}
                  data-index={item.index}
                >
                  {columns.map(column => (
                    <span
                      key={column.id}
                      role="gridcell"
                      className={`${css.cell} ${isText(column.kind) ? '' : 'num'} ${column.kind === 'code' ? 'mono' : ''}`}
                    >
                      {row === undefined ? (
                        <i className={css.missing} />
                      ) : (
                        <CellContent column={column} row={row} />
                      )}
                    </span>
                  ))}
                </div>
              );
            })}
          </Names>
        </div>
        {total === 0 && (
          <p className={css.empty} data-part="table-empty">
            {props.empty}
          </p>
        )}
      </div>
      <div className={css.foot} data-part="table-foot">
        <span aria-live="polite">
          {total === undefined ? `Counting ${props.noun}s` : plural(total, props.noun)}
        </span>
        {props.foot && <span>{props.foot}</span>}
      </div>
    </div>
  );
}
