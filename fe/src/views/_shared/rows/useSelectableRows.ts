// Table rows one of which can be selected: its details show beside the table, its slice on the timeline.
import { useMemo } from 'react';
import { useSelection } from '../../../state/selection';

interface Row {
  /** The slice on the timeline. */
  event: number;
}

/** `keyOf` must be the same function from render to render. */
export function useSelectableRows<R extends Row>(rows: R[], keyOf: (row: R) => string) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const keys = useMemo(() => new Map(rows.map(row => [keyOf(row), row])), [rows, keyOf]);
  /** Change parameters in the address; an empty value removes one. */
  const setParams = (change: Record<string, string>) => {
    const next = Object.entries({ ...params, ...change }).filter(([, value]) => value !== '');
    select({ params: Object.fromEntries(next) });
  };
  const pick = (key: string) => setParams({ select: params.select === key ? '' : key });
  return {
    setParams,
    /** Select a row by its key; deselect it if it is selected. */
    pick,
    chosen: params.select === undefined ? undefined : keys.get(params.select),
    close: () => setParams({ select: '' }),
    /** Props of the table. */
    table: {
      rows,
      rowKey: keyOf,
      selected: params.select,
      onSelect: (row: R | undefined) => setParams({ select: row ? keyOf(row) : '' }),
      onOpen: (row: R) => select({ view: 'trace', params: { event: String(row.event) } }),
    },
  };
}
