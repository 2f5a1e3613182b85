import { useMemo } from 'react';
import type { RankFamily } from '../../../api/types';
import { familyColor } from '../../../base/family';
import { formatDuration } from '../../../base/format';
import { Meter } from '../../../widgets/charts/Meter';
import { Name } from '../../../widgets/Name';
import type { Column } from '../../../widgets/table/columns';
import { rankName, rankNoun } from '../select';
import css from './JobTable.module.css';
import { JobTable, rankColumn, type TableProps } from './JobTable';

const UNSORTABLE_COLUMNS: ReadonlySet<string> = new Set(['sort', 'share_bar']);

/** Device work of each rank by kernel family. */
export function Families(table: TableProps) {
  const { payload } = table;
  const columns = useMemo(
    (): Column<RankFamily>[] => [
      {
        id: 'family',
        title: 'Family',
        kind: 'text',
        width: 180,
        value: row => row.family,
        render: row => (
          <span>
            <i className="dot" style={{ background: familyColor(row.family) }} /> {row.family}
          </span>
        ),
      },
      { id: 'sort', title: 'Kind', kind: 'text', width: 128, grow: false, value: row => row.kind },
      rankColumn(payload),
      { id: 'calls', title: 'Calls', kind: 'count', value: row => row.calls },
      { id: 'device_ns', title: 'Device time', kind: 'duration', value: row => row.device_ns },
      {
        id: 'share',
        title: `Share of ${rankNoun(payload)}`,
        kind: 'ratio',
        width: 120,
        value: row => row.share,
      },
      {
        id: 'share_bar',
        title: 'Share',
        kind: 'number',
        width: 140,
        value: row => row.share,
        render: row => <Meter ratio={row.share} color={familyColor(row.family)} />,
      },
      {
        id: 'kernel',
        title: 'Top kernel',
        kind: 'text',
        value: row => row.kernel,
        render: row => (
          <>
            <Name text={row.kernel} title={`${row.kernel}: ${formatDuration(row.kernel_ns)}`} />
            <span className={`num dim ${css.beside}`}>{formatDuration(row.kernel_ns)}</span>
          </>
        ),
      },
    ],
    [payload],
  );
  return (
    <JobTable
      {...table}
      part="distributed/families"
      name="families-by-rank"
      rows={payload.families}
      columns={columns}
      rowKey={row => `${row.worker}/${row.family}`}
      searchText={row => `${row.family}\n${row.kind}\n${rankName(row.rank, row.worker)}\n${row.kernel}`}
      unsortable={UNSORTABLE_COLUMNS}
      placeholder={`Filter families, kernels and ${rankNoun(payload)}s`}
      noun="row"
      empty="No device work was recorded: the ranks ran on the CPU, or the profiler didn’t record the devices."
    />
  );
}
