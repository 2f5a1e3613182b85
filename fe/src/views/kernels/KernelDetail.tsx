// Details of one row of device work: how it is launched, the spread of its durations, and what launches it.
import { useMemo } from 'react';
import type { CallDistribution, KernelRow, OriginTimes } from '../../api/types';
import { formatBytes, formatCount, formatDuration, formatRatio, plural } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Facts } from '../_shared/rows/Facts';
import { OriginList } from '../_shared/rows/OriginList';
import { RowActions } from '../_shared/rows/RowActions';
import { DurationHistogram } from '../_shared/rows/DurationHistogram';
import { Icon } from '../../widgets/Icon';
import { RowDetail } from '../../widgets/table/RowDetail';
import rowDetailCss from '../../widgets/table/RowDetail.module.css';

interface Props {
  row: KernelRow;
  onClose: () => void;
}

export function KernelDetail({ row, onClose }: Props) {
  const { selection, select } = useSelection();
  const { run, worker, span, params } = selection;
  const query = useMemo(() => {
    const { group_by, step, device, stream, operator, family, origin } = params;
    const given = { group_by, step, device, stream, operator, family, origin, event: String(row.event) };
    return Object.fromEntries(
      Object.entries(given).filter((entry): entry is [string, string] => Boolean(entry[1])),
    );
  }, [params, row.event]);
  const spread = useView<CallDistribution>('kernels/instances', { run, worker, span }, query);
  const instances = spread.data?.state === 'ready' ? spread.data.payload : undefined;
  const sources = useView<OriginTimes>(
    'kernels/origins',
    { run, worker, span },
    query,
    row.origin_places > 1,
  );
  const origins = sources.data?.state === 'ready' ? sources.data.payload.rows : [];
  const show = (event: number) => select({ view: 'trace', params: { event: String(event) } });
  const facts: [string, string][] = [
    ['Operator', row.operator ?? ''],
    ['From operator', row.origin_operator ?? ''],
    ['From module', row.origin_module ?? ''],
    ['From line', row.origin_line ?? ''],
    ['Origin', row.origin_places > 1 ? '' : (row.origin_reason ?? '')],
    ['Family', row.family],
    ['Grid', row.grid ?? ''],
    ['Block', row.block ?? ''],
    ['Registers per thread', row.registers === null ? '' : formatCount(row.registers)],
    ['Shared memory', row.shared_memory === null ? '' : formatBytes(row.shared_memory)],
    ['Blocks per SM', row.mean_blocks_per_sm === null ? '' : row.mean_blocks_per_sm.toFixed(2)],
    ['Occupancy, est.', row.mean_occupancy === null ? '' : formatRatio(row.mean_occupancy)],
    ['Limited by', row.limiter ?? ''],
    [
      'Tensor Cores',
      `${row.tc_used === null ? 'unknown' : row.tc_used ? 'used' : 'not used'}: ${row.tc_reason}`,
    ],
  ];
  return (
    <RowDetail
      label={`Details of ${row.short_name}`}
      title={row.short_name}
      fullName={row.name}
      mono
      onClose={onClose}
    >
      <p className="dim">
        {plural(row.calls, 'launch', 'launches')} · {formatDuration(row.total_ns)} ·{' '}
        {formatDuration(row.mean_ns)} each
      </p>
      <RowActions
        event={instances?.longest[0]?.event ?? row.event}
        name={row.name}
        label="Copy the full name"
      >
        <Button onClick={() => select({ view: 'operators', params: { kernel: row.name } })}>
          <Icon name="table" size={14} /> Launched by
        </Button>
      </RowActions>
      <Facts facts={facts} />
      {origins.length > 0 && (
        <>
          <h3>Where it comes from</h3>
          <OriginList rows={origins} />
        </>
      )}
      <h3>Time per launch</h3>
      <div className={rowDetailCss.spread}>
        {instances && instances.calls > 0 && (
          <DurationHistogram
            instances={instances}
            noun="launch"
            of={row.short_name}
            color="var(--c-kernel)"
            onOutlier={show}
          />
        )}
      </div>
      <h3>Full name</h3>
      <p className={`mono ${rowDetailCss.shape}`} data-part="full-name">
        {row.name}
      </p>
    </RowDetail>
  );
}
