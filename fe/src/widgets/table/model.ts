// How the table library sorts and searches the columns of this page.
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
  type ColumnDef,
} from '@tanstack/react-table';
import { isText, type Column } from './columns';

export const features = tableFeatures({
  columnFilteringFeature,
  columnVisibilityFeature,
  globalFilteringFeature,
  rowExpandingFeature,
  rowSortingFeature,
  expandedRowModel: createExpandedRowModel(),
  filteredRowModel: createFilteredRowModel(),
  sortedRowModel: createSortedRowModel(),
});

/** A column as the table library takes it. */
export function definition<R extends object>(column: Column<R>): ColumnDef<typeof features, R> {
  return {
    id: column.id,
    // Unknown values go last whichever way the column is sorted.
    accessorFn: row => column.value(row) ?? undefined,
    sortUndefined: 'last',
    sortFn: (a, b, id) => compare(a.getValue(id), b.getValue(id)),
  };
}

function compare(a: unknown, b: unknown): number {
  if (typeof a === 'string' && typeof b === 'string') {
    return a < b ? -1 : a > b ? 1 : 0;
  }
  return Number(a) - Number(b);
}

/** What a search looks at: the text columns. */
export function allText<R>(columns: Column<R>[]): (row: R) => string {
  const texts = columns.filter(column => isText(column.kind));
  return row => texts.map(column => column.value(row) ?? '').join('\n');
}
