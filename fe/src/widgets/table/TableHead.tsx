// The head of a table: sorting, and the menu that shows and hides columns.
import { Popover } from '@mantine/core';
import type { TableSort } from '../../state/table';
import { Icon } from '../Icon';
import { Button } from '../inputs/Button';
import { Checkbox } from '../inputs/Checkbox';
import { Term } from '../Term';
import { isText, type Column } from './columns';
import css from './Table.module.css';

interface TableHeadProps<R> {
  columns: Column<R>[];
  sort: TableSort | undefined;
  onSort: (sort: TableSort | undefined) => void;
  /** Ids of columns that can't be sorted by. */
  unsortable?: ReadonlySet<string>;
  gridTemplateColumns: string;
  minWidth: string;
}

/** The titles of columns: a click sorts, a second one reverses the order, a third one restores the original order. */
export function TableHead<R>({ columns, sort, onSort, unsortable, ...style }: TableHeadProps<R>) {
  const cycleSort = (column: Column<R>) => {
    const firstDescending = !isText(column.kind);
    if (sort?.id !== column.id) {
      onSort({ id: column.id, descending: firstDescending });
    } else {
      onSort(sort.descending === firstDescending ? { ...sort, descending: !firstDescending } : undefined);
    }
  };
  return (
    <div className={`${css.head} ${css.row}`} role="row" style={style}>
      {columns.map(column => (
        <span
          key={column.id}
          role="columnheader"
          aria-sort={sort?.id === column.id ? (sort.descending ? 'descending' : 'ascending') : 'none'}
          className={isText(column.kind) ? '' : 'num'}
        >
          {unsortable?.has(column.id) ? (
            <span className={css.sorter}>{column.title}</span>
          ) : (
            <Button look="bare" className={css.sorter} tabIndex={0} onClick={() => cycleSort(column)}>
              {column.title}
              {sort?.id === column.id && <i className={css.arrow}>{sort.descending ? '↓' : '↑'}</i>}
            </Button>
          )}
          {column.term && <Term id={column.term} />}
        </span>
      ))}
    </div>
  );
}

interface ColumnMenuProps {
  columns: { id: string; title: string; shown: boolean; toggle: (shown: boolean) => void }[];
}

/** The menu that shows and hides columns. */
export function ColumnMenu({ columns }: ColumnMenuProps) {
  return (
    <Popover position="bottom-end" shadow="md" withinPortal trapFocus returnFocus>
      <Popover.Target>
        <Button look="quiet" title="Columns" aria-label="Columns">
          <Icon name="columns" size={14} />
        </Button>
      </Popover.Target>
      <Popover.Dropdown className="menu">
        {columns.map(column => (
          <Checkbox key={column.id} label={column.title} checked={column.shown} onChange={column.toggle} />
        ))}
      </Popover.Dropdown>
    </Popover>
  );
}
