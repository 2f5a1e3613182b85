import { useCallback, useMemo } from 'react';
import { useSelection } from './selection';

interface Sort {
  id: string;
  descending: boolean;
}

interface Search {
  text: string;
  regex: boolean;
}

/** The sorting and search of a view's table, stored in the address; without `initial` rows are not sorted. */
export function useTableState(initial?: Sort) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const sortParam = params.sort ?? (initial ? `${initial.descending ? '-' : ''}${initial.id}` : 'none');
  const sort = useMemo<Sort | undefined>(
    () =>
      sortParam === 'none'
        ? undefined
        : { id: sortParam.replace(/^-/, ''), descending: sortParam.startsWith('-') },
    [sortParam],
  );
  const text = params.q ?? '';
  const regex = params.re === '1';
  const search = useMemo<Search>(() => ({ text, regex }), [text, regex]);
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
    (next: Sort | undefined) => put({ sort: next ? `${next.descending ? '-' : ''}${next.id}` : 'none' }),
    [put],
  );
  const onSearch = useCallback(
    (next: Search) => put({ q: next.text || undefined, re: next.regex ? '1' : undefined }),
    [put],
  );
  return { sort, onSort, search, onSearch };
}
