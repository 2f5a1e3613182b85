// Every block of memory, from its allocation to its release; the rows stay in the server.
import { useMemo } from 'react';
import type { MemoryEvent, MemoryEvents } from '../../api/types';
import type { Selectors } from '../../api/types';
import { exactDuration, formatBytes } from '../../base/format';
import { usePages } from '../../state/pages';
import { formatOffset } from '../../base/ticks';
import { Button } from '../../widgets/inputs/Button';
import { Name } from '../../widgets/Name';
import type { Column } from '../../widgets/table/columns';
import { ROWS_PER_PAGE, PagedTable } from '../../widgets/table/PagedTable';
import type { TimeRange } from './state';
import css from './Blocks.module.css';

interface Props {
  selectors: Selectors;
  device: string;
  range: TimeRange | null;
  /** What the bars of the lifetimes span. */
  span: TimeRange;
  hasModules: boolean;
  sort: string;
  search: string;
  state: string;
  onSort: (sort: string) => void;
  onSearch: (search: string) => void;
  onEvent: (event: number) => void;
  before: React.ReactNode;
}

const RELEASE_TEXTS: Record<string, string> = {
  unreleased: 'still live',
  replaced: 'unknown',
  unknown: 'unknown',
};
const RELEASE_REASONS: Record<string, string> = {
  unreleased: 'Still live at the end of the trace.',
  replaced: 'No release is recorded, but its address was allocated again.',
  unknown: 'The file has no addresses, so releases can’t be matched with allocations.',
};
const UNSORTABLE_COLUMNS: ReadonlySet<string> = new Set(['module', 'lifetime', 'event']);

export function Blocks(props: Props) {
  const { selectors, device, range, span, hasModules, sort, search, state, onEvent } = props;
  const by = sort.replace(/^-/, '');
  const descending = sort.startsWith('-');
  const params = useMemo<Record<string, string>>(
    () => ({
      device,
      sort: by,
      descending: String(descending),
      ...(search && { search }),
      ...(state && { state }),
      ...(range && { begin: String(range.begin), end: String(range.end) }),
    }),
    [device, by, descending, search, state, range],
  );
  const pages = usePages<MemoryEvents>('memory/events', selectors, params, ROWS_PER_PAGE);
  const columns = useMemo(() => columnsOf(span, hasModules, onEvent), [span, hasModules, onEvent]);
  return (
    <PagedTable
      name="memory-blocks"
      columns={columns}
      total={pages.first?.total}
      page={index => pages.page(index)?.rows}
      onPages={pages.setPages}
      fetchAll={async () => (await pages.fetchRows(0)).rows}
      sort={{ id: by, descending }}
      onSort={next => props.onSort(`${next.descending ? '-' : ''}${next.id}`)}
      unsortable={UNSORTABLE_COLUMNS}
      search={search}
      onSearch={props.onSearch}
      placeholder="Filter by operator"
      onOpen={row => onEvent(row.operator_event ?? row.event)}
      before={props.before}
      foot={pages.first && `sum: ${formatBytes(pages.first.total_bytes)}`}
      empty={
        search || state || range
          ? 'No block matches these filters. Remove one to see more.'
          : 'No allocations were recorded on this device.'
      }
      noun="block"
    />
  );
}

function columnsOf(
  span: TimeRange,
  hasModules: boolean,
  onEvent: (event: number) => void,
): Column<MemoryEvent>[] {
  const length = Math.max(span.end - span.begin, 1);
  const time = (ns: number) => formatOffset(ns, length / 10_000);
  const columns: (Column<MemoryEvent> | false)[] = [
    {
      id: 'operator',
      title: 'Allocated by',
      kind: 'text',
      value: row => row.operator ?? '',
      render: row =>
        row.operator === null ? (
          <span className="dim">{row.state === 'older' ? 'before the trace' : 'outside operators'}</span>
        ) : (
          <Name text={row.operator} />
        ),
    },
    hasModules && {
      id: 'module',
      title: 'Module',
      kind: 'text',
      value: row => row.module,
      reason: row => (row.state === 'older' ? 'Allocated before the trace started.' : 'Outside any module.'),
    },
    { id: 'size', title: 'Size', kind: 'bytes', value: row => row.size_bytes },
    {
      id: 'allocated',
      title: 'Allocated',
      kind: 'number',
      width: 108,
      value: row => row.allocated_ns,
      render: row => <span title={exactDuration(row.allocated_ns!)}>{time(row.allocated_ns!)}</span>,
      reason: 'Allocated before the trace started.',
    },
    {
      id: 'released',
      title: 'Released',
      kind: 'number',
      width: 108,
      value: row => row.released_ns ?? RELEASE_TEXTS[row.state],
      render: row =>
        row.released_ns === null ? (
          <span className="dim" title={RELEASE_REASONS[row.state]}>
            {RELEASE_TEXTS[row.state]}
          </span>
        ) : (
          <span title={exactDuration(row.released_ns)}>{time(row.released_ns)}</span>
        ),
    },
    {
      id: 'duration',
      title: 'Lived',
      kind: 'duration',
      value: row => row.duration_ns,
      reason: row => RELEASE_REASONS[row.state],
    },
    {
      id: 'lifetime',
      title: 'Lifetime',
      kind: 'text',
      width: 180,
      value: () => '',
      render: row => {
        const from = ((Math.max(row.allocated_ns ?? span.begin, span.begin) - span.begin) / length) * 100;
        const to = ((Math.min(row.released_ns ?? span.end, span.end) - span.begin) / length) * 100;
        return (
          <span className={css.lifetime}>
            <i style={{ left: `${Math.min(from, 99.5)}%`, width: `max(2px, ${Math.max(to - from, 0)}%)` }} />
          </span>
        );
      },
    },
    {
      id: 'event',
      title: 'Show on',
      kind: 'number',
      width: 64,
      value: row => row.event,
      render: row => (
        <Button look="text" onClick={() => onEvent(row.event)}>
          timeline
        </Button>
      ),
    },
  ];
  return columns.filter(column => column !== false);
}
