// What the two traces differ in as a whole: devices, memory, communication.
import type { DiffPayload } from '../../api/types';
import { formatBytes, formatDuration, formatRatio } from '../../base/format';
import { percent, points, signed, signedBytes, Verdict } from './Verdict';
import css from './Whole.module.css';

export function WholeTable({ payload }: { payload: DiffPayload }) {
  const { devices, memory, communication, reasons } = payload;
  return (
    <table className={css.table}>
      <thead>
        <tr>
          <th>Per step, or over the trace</th>
          <th className="num">Base</th>
          <th className="num">Candidate</th>
          <th className="num">Change</th>
          <th>Verdict</th>
        </tr>
      </thead>
      <tbody>
        <TypicalStep payload={payload} />
        <Time name="Mean step, all steps" change={payload.step} judged={false} />
        {devices.flatMap(device => {
          const id = `Device ${device.candidate_id ?? device.base_id}`;
          const shares = [
            ['utilization (kernels)', device.utilization],
            ['est. SM efficiency', device.sm_efficiency],
            ['est. achieved occupancy', device.achieved_occupancy],
            ['kernel time on Tensor Cores', device.tensor_core_ratio],
          ] as const;
          return [
            <Time key={`${id} busy`} name={`${id} busy (any work)`} change={device.busy} />,
            ...shares.map(([name, share]) => (
              <tr key={`${id} ${name}`}>
                <td>
                  {id} {name}
                </td>
                <td className="num">{share.base === null ? '–' : formatRatio(share.base)}</td>
                <td className="num">{share.candidate === null ? '–' : formatRatio(share.candidate)}</td>
                <td className="num">{share.delta_share === null ? '–' : points(share.delta_share)}</td>
                <td className="dim" title="One figure for the whole trace">
                  –
                </td>
              </tr>
            )),
          ];
        })}
        {memory.flatMap(each =>
          (
            [
              ['peak allocated', each.peak_allocated],
              ['peak reserved', each.peak_reserved],
            ] as const
          ).map(([name, size]) => (
            <tr key={`${each.device} ${name}`}>
              <td>
                {each.device} {name}
              </td>
              <td className="num">{size.base_bytes === null ? '–' : formatBytes(size.base_bytes)}</td>
              <td className="num">
                {size.candidate_bytes === null ? '–' : formatBytes(size.candidate_bytes)}
              </td>
              <td className="num">
                {size.delta_bytes === null ? '–' : signedBytes(size.delta_bytes)}
                {size.delta_ratio !== null && size.delta_bytes !== 0 && (
                  <span className="dim"> {percent(size.delta_ratio)}</span>
                )}
              </td>
              <td className="dim" title="One figure for the whole trace">
                –
              </td>
            </tr>
          )),
        )}
        {memory.length === 0 && (
          <tr>
            <td>Memory</td>
            <td colSpan={4} className="dim">
              {reasons.memory ?? 'not recorded'}
            </td>
          </tr>
        )}
        <Time name="Communication" change={communication.total} />
        <Time name="Exposed communication" change={communication.exposed} />
        {communication.collectives.map(each => (
          <Time
            key={`${each.name}/${each.status}`}
            name={each.short_name}
            whole={each.name}
            change={each.total}
          />
        ))}
      </tbody>
    </table>
  );
}

/** What the headline speaks of: a typical step, without the shortest and the longest. */
function TypicalStep({ payload: { step, base, candidate } }: { payload: DiffPayload }) {
  if (base.steps.length === 0 || candidate.steps.length === 0) {
    return null;
  }
  const delta_ns = candidate.typical_ns - base.typical_ns;
  const typical = {
    ...step,
    base_ns: base.typical_ns,
    candidate_ns: candidate.typical_ns,
    delta_ns,
    delta_ratio: base.typical_ns > 0 ? delta_ns / base.typical_ns : null,
  };
  return <Time name="Typical step, as in the headline" change={typical} />;
}

interface TimeProps {
  name: string;
  whole?: string;
  change: DiffPayload['step'];
  /** The verdict is about this figure. */
  judged?: boolean;
}

function Time({ name, whole, change, judged = true }: TimeProps) {
  return (
    <tr>
      <td title={whole}>{name}</td>
      <td className="num">{change.base_ns === null ? '–' : formatDuration(change.base_ns)}</td>
      <td className="num">{change.candidate_ns === null ? '–' : formatDuration(change.candidate_ns)}</td>
      <td className="num">
        {change.delta_ns === null ? '–' : signed(change.delta_ns)}
        {change.delta_ratio !== null && change.delta_ns !== 0 && (
          <span className="dim"> {percent(change.delta_ratio)}</span>
        )}
      </td>
      <td>{judged && change.delta_ns !== null && <Verdict change={change} />}</td>
    </tr>
  );
}
