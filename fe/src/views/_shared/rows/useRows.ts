// Rows of a table of which one may be chosen: its details stand beside the table, its slice on the timeline.
import { useMemo } from 'react';
import { useSelection } from '../../../state/selection';

interface Row {
  /** The slice on the timeline. */
  event: number;
}

/** `keyOf` must be the same function while it names rows the same way. */
export function useRows<R extends Row>(rows: R[], keyOf: (row: R) => string) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const keys = useMemo(() => new Map(rows.map(row => [keyOf(row), row])), [rows, keyOf]);
  /** Changes parameters in the address; an empty one leaves it. */
  const put = (change: Record<string, string>) => {
    const next = Object.entries({ ...params, ...change }).filter(([, value]) => value !== '');
    select({ params: Object.fromEntries(next) });
  };
  const pick = (key: string) => put({ select: params.select === key ? '' : key });
  return {
    put,
    /** Chooses a row by its key; again, none. */
    pick,
    chosen: params.select === undefined ? undefined : keys.get(params.select),
    close: () => put({ select: '' }),
    /** What the table is given. */
    table: {
      rows,
      rowKey: keyOf,
      selected: params.select,
      onSelect: (row: R | undefined) => put({ select: row ? keyOf(row) : '' }),
      onOpen: (row: R) => select({ view: 'trace', params: { event: String(row.event) } }),
    },
  };
}
