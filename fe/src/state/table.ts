import { useCallback, useMemo } from 'react';
import { useSelection } from './selection';

/** The column that a table is sorted by. */
export interface TableSort {
  id: string;
  descending: boolean;
}

/** What a table is searched for; `regex`: whether it is a regular expression. */
export interface TableSearch {
  text: string;
  regex: boolean;
}

/** The sorting and search of a view's table, stored in the address; without `initial` rows are not sorted. */
export function useTableState(initial?: TableSort) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const sortParam = params.sort ?? (initial ? `${initial.descending ? '-' : ''}${initial.id}` : 'none');
  const sort = useMemo<TableSort | undefined>(
    () =>
      sortParam === 'none'
        ? undefined
        : { id: sortParam.replace(/^-/, ''), descending: sortParam.startsWith('-') },
    [sortParam],
  );
  const text = params.q ?? '';
  const regex = params.re === '1';
  const search = useMemo<TableSearch>(() => ({ text, regex }), [text, regex]);
  const put = useCallback(
    (change: Record<string, string | undefined>) => {
      const next = Object.entries({ ...params, ...change });
      select(
        { params: Object.fromEntries(next.filter((entry): entry is [string, string] => Boolean(entry[1]))) },
        true,
      );
    },
    [params, select],
  );
  const onSort = useCallback(
    (next: TableSort | undefined) => put({ sort: next ? `${next.descending ? '-' : ''}${next.id}` : 'none' }),
    [put],
  );
  const onSearch = useCallback(
    (next: TableSearch) => put({ q: next.text || undefined, re: next.regex ? '1' : undefined }),
    [put],
  );
  return { sort, onSort, search, onSearch };
}
