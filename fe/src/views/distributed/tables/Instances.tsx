import { useMemo } from 'react';
import type { CollectiveInstance, CollectivesPayload, DistributedPayload } from '../../../api/types';
import { formatOffset } from '../../../base/ticks';
import { usePages } from '../../../state/pages';
import { Button } from '../../../widgets/inputs/Button';
import { Name } from '../../../widgets/Name';
import type { Column } from '../../../widgets/table/columns';
import { ROWS_PER_PAGE, PagedTable } from '../../../widgets/table/PagedTable';
import { rankName } from '../select';
import { useStepWords, type Say } from '../../../state/steps';
import css from './JobTable.module.css';
import { bandwidthColumn, type TableProps } from './JobTable';

interface Props extends TableProps {
  sort: string;
  search: string;
  filter: Record<string, string>;
  onSort: (sort: string) => void;
  onSearch: (search: string) => void;
  onPick: (id: number) => void;
}

const UNSORTABLE_COLUMNS: ReadonlySet<string> = new Set(['late', 'dtype']);

/** All collectives, page by page. */
export function Instances({
  payload,
  selectors,
  sort,
  search,
  filter,
  onSort,
  onSearch,
  onPick,
  before,
}: Props) {
  const by = sort.replace(/^-/, '');
  const descending = sort.startsWith('-');
  const wanted = JSON.stringify(filter);
  const params = useMemo<Record<string, string>>(
    () => ({
      ...(JSON.parse(wanted) as Record<string, string>),
      sort: by,
      descending: String(descending),
      ...(search && { name: search }),
    }),
    [wanted, by, descending, search],
  );
  const pages = usePages<CollectivesPayload>('distributed/collectives', selectors, params, ROWS_PER_PAGE);
  const say = useStepWords();
  const columns = useMemo(() => instanceColumns(payload, onPick, say), [payload, onPick, say]);
  return (
    <PagedTable
      name="collectives"
      columns={columns}
      total={pages.first?.total}
      page={index => pages.page(index)?.rows}
      onPages={pages.setPages}
      fetchAll={async () => (await pages.fetchRows(0)).rows}
      sort={{ id: by, descending }}
      onSort={next => onSort(`${next.descending ? '-' : ''}${next.id}`)}
      unsortable={UNSORTABLE_COLUMNS}
      search={search}
      onSearch={onSearch}
      placeholder="Filter by name"
      onOpen={row => onPick(row.id)}
      before={before}
      empty={
        search || Object.keys(filter).length > 0
          ? 'No collective matches these filters. Remove one to see more.'
          : payload.problems.some(problem => problem.kind === 'loading')
            ? 'Reading the traces…'
            : 'No collective was recorded.'
      }
      noun="collective"
    />
  );
}

function instanceColumns(
  payload: DistributedPayload,
  onPick: (id: number) => void,
  say: Say,
): Column<CollectiveInstance>[] {
  return [
    {
      id: 'name',
      title: 'Collective',
      kind: 'text',
      value: row => row.name,
      render: row => (
        <>
          <Button look="text" className={css.named} onClick={() => onPick(row.id)}>
            <Name text={row.name} />
          </Button>
          {row.mismatch && (
            <span className={`status warning ${css.beside}`} title={row.mismatch}>
              differs
            </span>
          )}
        </>
      ),
    },
    {
      id: 'group',
      title: 'Process group',
      kind: 'text',
      width: 130,
      value: row => row.group_label,
    },
    { id: 'step', title: say('Step'), kind: 'number', value: row => row.step },
    {
      id: 'start',
      title: 'Start',
      kind: 'number',
      width: 100,
      value: row => row.start_ns,
      render: row => formatOffset(row.start_ns!, 10_000),
      reason: payload.reasons.start_ns,
    },
    { id: 'ranks', title: 'Ranks', kind: 'count', value: row => row.ranks },
    { id: 'bytes', title: 'Bytes', kind: 'bytes', value: row => row.bytes, reason: payload.reasons.bytes },
    { id: 'latency', title: 'Latency', kind: 'duration', value: row => row.latency_ns },
    { id: 'transfer', title: 'Transfer', kind: 'duration', value: row => row.transfer_ns },
    { id: 'waiting', title: 'Waiting', kind: 'duration', value: row => row.waiting_ns, term: 'rank_time' },
    {
      id: 'skew',
      title: 'Skew',
      kind: 'duration',
      value: row => row.skew_ns,
      term: 'skew',
      reason: payload.reasons.skew_ns,
    },
    {
      id: 'late',
      title: 'Last',
      kind: 'text',
      width: 90,
      value: row => (row.late_worker === null ? null : rankName(row.late_rank, row.late_worker)),
      reason: payload.reasons.late_worker,
    },
    { ...bandwidthColumn(payload), id: 'bandwidth' },
  ];
}
