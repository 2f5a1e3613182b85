import type { CriticalPathPayload, PathGroupRow, PathGroupsPayload, Selectors } from '../../api/types';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import { Sentence } from '../../widgets/Sentence';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { timelineTarget } from '../_shared/modules/select';
import css from './JobPath.module.css';

export const PATH_GROUPINGS = [
  ['category', 'category'],
  ['operator', 'operator'],
  ['module', 'module'],
  ['line', 'source line'],
] as const;

type Grouping = (typeof PATH_GROUPINGS)[number][0];

interface Props {
  by: Exclude<Grouping, 'category'>;
  path: CriticalPathPayload['path'];
  selectors: Required<Selectors>;
}

/** Table of the path by operator, module or source line; the rows sum to the step. */
export function PathGroups({ by, path, selectors }: Props) {
  const { data, error } = useView<PathGroupsPayload>('critical_path/groups', selectors, { by });
  const { selection, select } = useSelection();
  const table = useTableState({ id: 'time_ns', descending: true });
  if (data?.state !== 'ready' || data.payload.by !== by) {
    return <p className="dim">{error?.message ?? 'Computing…'}</p>;
  }
  const { rows, reasons } = data.payload;
  const { params } = selection;
  return (
    <>
      {Object.entries(reasons).map(([field, reason]) => (
        <p key={field} className="dim">
          <Sentence text={reason} />
        </p>
      ))}
      <div className={css.segments}>
        <DataTable
          key={by}
          name={`path by ${by}`}
          rows={rows}
          columns={columnsOf(path.duration_ns)}
          rowKey={keyOf}
          selected={params.select}
          onSelect={row => row?.target && select({ params: { ...params, select: row.target } })}
          onOpen={row =>
            typeof row.event === 'number' && select(timelineTarget(row.event, by !== 'operator'))
          }
          {...table}
          placeholder={`Filter ${by}s`}
          noun={by === 'line' ? 'source line' : by}
          empty="No time passes on the critical path."
          foot="each segment counts for its innermost row; the rows sum to the path"
        />
      </div>
    </>
  );
}

const keyOf = (row: PathGroupRow): string => row.target ?? row.title;

function columnsOf(duration: number): Column<PathGroupRow>[] {
  return [
    { id: 'title', title: 'Innermost', kind: 'text', value: row => row.title, width: 260 },
    {
      id: 'time_ns',
      title: 'On the path',
      kind: 'duration',
      value: row => row.time_ns,
      bar: { of: duration, color: 'var(--c-cpu_exec)', percent: true },
    },
    { id: 'host_ns', title: 'Host', kind: 'duration', value: row => row.host_ns },
    { id: 'device_ns', title: 'Device', kind: 'duration', value: row => row.device_ns },
    { id: 'latency_ns', title: 'Latency', kind: 'duration', value: row => row.latency_ns },
  ];
}
