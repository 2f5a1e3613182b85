import { useMemo } from 'react';
import type { DistributedPayload } from '../../../api/types';
import { formatDuration } from '../../../base/format';
import { useTableState } from '../../../state/table';
import type { Column } from '../../../widgets/table/columns';
import { DataTable } from '../../../widgets/table/DataTable';
import { rowNoun } from '../select';
import type { TableProps } from './JobTable';

type RankRow = DistributedPayload['ranks'][number];

export const METHOD: Record<string, string> = {
  reference: 'reference',
  base_time: 'time of day',
  clock_sync: 'barrier of the trainer',
  collective_ends: 'ends of collectives',
  none: 'not comparable',
};

/** The ranks: where they ran, and how their clocks were aligned. */
export function Ranks({ payload, before, onWorker }: TableProps & { onWorker: (worker: string) => void }) {
  const table = useTableState();
  const places = useMemo(
    () =>
      new Map(
        payload.nodes.flatMap(node =>
          node.processes.map(process => [process.worker, { node: node.name, process }] as const),
        ),
      ),
    [payload],
  );
  const columns = useMemo<Column<RankRow>[]>(
    () => [
      { id: 'worker', title: 'Worker', kind: 'text', value: row => row.worker },
      { id: 'rank', title: 'Rank', kind: 'count', value: row => row.rank },
      {
        id: 'state',
        title: 'State',
        kind: 'text',
        width: 150,
        value: row => row.state,
        render: row => (
          <span
            className={`clip ${row.state === 'failed' ? 'status error' : row.compared ? '' : 'dim'}`}
            title={row.reason ?? row.state}
          >
            {row.reason ?? (row.state === 'ready' ? 'compared' : row.state)}
          </span>
        ),
      },
      { id: 'node', title: 'Node', kind: 'text', width: 140, value: row => places.get(row.worker)?.node },
      {
        id: 'devices',
        title: 'Devices',
        kind: 'text',
        width: 160,
        value: row =>
          places
            .get(row.worker)
            ?.process.devices.map(device => device.name ?? `${device.kind} ${device.id}`)
            .join(', '),
      },
      { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
      {
        id: 'method',
        title: 'Clock',
        kind: 'text',
        width: 140,
        term: 'job_clock',
        value: row => row.clock && (METHOD[row.clock.method] ?? row.clock.method),
      },
      { id: 'residual', title: 'Clock error', kind: 'duration', value: row => row.clock?.residual_ns },
      {
        id: 'offset',
        title: 'Correction',
        kind: 'duration',
        width: 92,
        value: row => row.clock?.offset_ns,
      },
      {
        id: 'start',
        title: 'Recording starts',
        kind: 'duration',
        width: 104,
        value: row => row.recording_start_ns,
      },
      { id: 'duration', title: 'Recorded', kind: 'duration', value: row => row.recording_duration_ns },
    ],
    [places],
  );
  return (
    <DataTable
      name="ranks"
      rows={payload.ranks}
      columns={columns}
      rowKey={row => row.worker}
      onOpen={row => onWorker(row.worker)}
      {...table}
      placeholder={`Filter ${rowNoun(payload)}s`}
      before={before}
      noun={rowNoun(payload)}
      foot={
        payload.start_skew_ns !== null &&
        `recordings start within ${formatDuration(payload.start_skew_ns)} of each other`
      }
    />
  );
}
