// All that is known of one row: its work, its time, its roofline, and the way to its first call.
import type { DevicePeaks, RooflineRow } from '../../api/types';
import {
  formatBytes,
  formatDuration,
  formatLimit,
  formatNumber,
  formatRatio,
  plural,
} from '../../base/format';
import { RowDetail } from '../../widgets/table/RowDetail';
import { Facts } from '../_shared/rows/Facts';
import { RowActions } from '../_shared/rows/RowActions';

interface Props {
  row: RooflineRow;
  peaks: readonly DevicePeaks[];
  onClose: () => void;
}

export function RooflineDetail({ row, peaks, onClose }: Props) {
  const facts: [string, string | null][] = [
    ['Input shapes', row.input_shape],
    ['FLOPs', row.flops === null ? null : `${formatNumber(row.flops / 1e9)} GFLOP`],
    ['Hardware counters', row.measured ? 'FLOPs or bytes of some of its calls were counted' : null],
    ['Work of graph replays', row.captured ? 'from the inputs when the graph was captured' : null],
    [
      'Memory traffic',
      row.bytes === null ? null : formatBytes(row.bytes) + (row.estimated ? ', estimated' : ''),
    ],
    ['Intensity', row.intensity === null ? null : `${formatNumber(row.intensity)} FLOP/byte`],
    ['Arithmetic', row.type === null ? null : `${row.type}, ${row.unit}`],
    ['Time at the roofline', row.roof_ns === null ? null : formatDuration(row.roof_ns)],
    ['Share of roofline', row.efficiency === null ? null : formatRatio(row.efficiency)],
    ['Peaks from', row.roof_ns === null ? null : sources(peaks)],
    ['Saving at the roofline', row.saved_ns === null ? null : `up to ${formatLimit(row.saved_ns)}`],
    ['Bound by', row.bound],
    ['Unknown', row.reason],
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
        {plural(row.calls, 'call')} · {formatDuration(row.device_ns)} ·{' '}
        {formatDuration(row.device_ns / row.calls)} each
      </p>
      <RowActions event={row.event} name={row.name} label="Copy the full name" />
      <Facts facts={facts} />
    </RowDetail>
  );
}

/** The devices whose peaks the figures rest on, and who says what these are. */
const sources = (peaks: readonly DevicePeaks[]): string | null =>
  [
    ...new Set(
      peaks.flatMap(each => (each.name === null ? [] : [`${each.name} (${each.source ?? 'no source'})`])),
    ),
  ].join('; ') || null;
