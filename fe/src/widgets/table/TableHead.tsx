import { Button } from '../inputs/Button';
import { Term } from '../Term';
import { isText, type Column } from './columns';
import css from './Table.module.css';

export interface Sort {
  id: string;
  descending: boolean;
}

interface Props<R> {
  columns: Column<R>[];
  sort: Sort | undefined;
  onSort: (sort: Sort | undefined) => void;
  /** Columns that cannot be sorted by. */
  unsorted?: ReadonlySet<string>;
  gridTemplateColumns: string;
  minWidth: number;
}

/** The head of a table: a click sorts, another turns it around, a third leaves the rows as they come. */
export function TableHead<R>({ columns, sort, onSort, unsorted, ...style }: Props<R>) {
  const next = (column: Column<R>) => {
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
          {unsorted?.has(column.id) ? (
            <span className={css.sorter}>{column.title}</span>
          ) : (
            <Button look="bare" className={css.sorter} tabIndex={0} onClick={() => next(column)}>
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
