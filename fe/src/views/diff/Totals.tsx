// Totals of both sides: the step, devices, FLOPs, memory, communication.
import type { DiffPayload } from '../../api/types';
import {
  deviceName,
  formatBytes,
  formatCount,
  formatDuration,
  formatNumber,
  formatRatio,
  formatSignedBytes,
  formatSignedDuration,
  formatSignedPoints,
  formatSignedRatio,
} from '../../base/format';
import { Verdict } from './Verdict';
import { Sentence } from '../../widgets/Sentence';
import css from './Totals.module.css';

export function TotalsTable({ payload }: { payload: DiffPayload }) {
  const { step, devices, memory, communication, reasons } = payload;
  const hasOtherMean =
    step.base_ns !== payload.base.typical_ns || step.candidate_ns !== payload.candidate.typical_ns;
  const communicates = communication.total.base_ns !== 0 || communication.total.candidate_ns !== 0;
  return (
    <table className={css.table}>
      <thead>
        <tr>
          <th>Per {payload.step_noun}, or over the trace</th>
          <th className="num">Base</th>
          <th className="num">Candidate</th>
          <th className="num">Change</th>
          <th>Verdict</th>
        </tr>
      </thead>
      <tbody>
        <TypicalStep payload={payload} />
        {hasOtherMean && (
          <TimeRow
            name={`Mean ${payload.step_noun}, all ${payload.step_noun}s`}
            change={payload.step}
            judged={false}
          />
        )}
        {payload.serving.flatMap(({ phase, iterations, iteration, per_token: perToken }) => [
          <TimeRow
            key={phase}
            name={`${phase} iteration (${formatCount(iterations[0])} before, ${formatCount(iterations[1])} now)`}
            change={iteration}
          />,
          perToken.base_ns !== null && (
            <TimeRow key={`${phase} token`} name={`${phase}, per token`} change={perToken} />
          ),
        ])}
        {devices.flatMap(device => {
          const id = deviceName(payload.candidate.device_type, device.candidate_id ?? device.base_id ?? '');
          const shares = [
            ['utilization (kernels)', device.utilization],
            ['est. SM efficiency', device.sm_efficiency],
            ['est. achieved occupancy', device.achieved_occupancy],
            ['kernel time on Tensor Cores', device.tensor_core_ratio],
          ] as const;
          return [
            <TimeRow key={`${id} busy`} name={`${id} busy (any work)`} change={device.busy} />,
            ...shares.map(([name, share]) => (
              <tr key={`${id} ${name}`}>
                <td>
                  {id} {name}
                </td>
                <td className="num">{share.base === null ? '–' : formatRatio(share.base)}</td>
                <td className="num">{share.candidate === null ? '–' : formatRatio(share.candidate)}</td>
                <td className="num">
                  {share.delta_share === null ? '–' : formatSignedPoints(share.delta_share)}
                </td>
                <td className="dim" title="One value per recording, so there’s no verdict">
                  –
                </td>
              </tr>
            )),
          ];
        })}
        <FlopsRows payload={payload} />
        {memory.flatMap(row =>
          (
            [
              ['peak allocated', row.peak_allocated],
              ['peak reserved', row.peak_reserved],
            ] as const
          )
            // The host's allocator reserves nothing.
            .filter(([, size]) => size.base_bytes !== 0 || size.candidate_bytes !== 0)
            .map(([name, size]) => (
              <tr key={`${row.device} ${name}`}>
                <td>
                  {row.device} {name}
                </td>
                <td className="num">{size.base_bytes === null ? '–' : formatBytes(size.base_bytes)}</td>
                <td className="num">
                  {size.candidate_bytes === null ? '–' : formatBytes(size.candidate_bytes)}
                </td>
                <td className="num">
                  {size.delta_bytes === null ? '–' : formatSignedBytes(size.delta_bytes)}
                  {size.delta_ratio !== null && size.delta_bytes !== 0 && (
                    <span className="dim"> {formatSignedRatio(size.delta_ratio)}</span>
                  )}
                </td>
                <td className="dim" title="One value per recording, so there’s no verdict">
                  –
                </td>
              </tr>
            )),
        )}
        {memory.length === 0 && (
          <tr>
            <td>Memory</td>
            <td colSpan={4} className="dim">
              {reasons.memory ? <Sentence text={reasons.memory} /> : 'not recorded'}
            </td>
          </tr>
        )}
        {communicates && (
          <>
            <TimeRow name="Communication" change={communication.total} />
            <TimeRow name="Exposed communication" change={communication.exposed} />
          </>
        )}
        {communication.collectives.map(row => (
          <TimeRow
            key={`${row.name}/${row.status}`}
            name={row.short_name}
            fullName={row.name}
            change={row.total}
          />
        ))}
      </tbody>
    </table>
  );
}

/** FLOPs and FLOP/s of matrix operators, and the share of device time with known work. */
function FlopsRows({ payload: { work, work_coverage: coverage, reasons } }: { payload: DiffPayload }) {
  if (work.base_flops === null && work.candidate_flops === null) {
    return reasons.work === undefined ? null : (
      <tr>
        <td>FLOPs of matrix operators</td>
        <td colSpan={4} className="dim">
          <Sentence text={reasons.work} />
        </td>
      </tr>
    );
  }
  const rows = [
    ['GFLOP of matrix operators', work.base_flops, work.candidate_flops, 1e9],
    ['TFLOP/s of matrix operators', work.base_flops_per_s, work.candidate_flops_per_s, 1e12],
  ] as const;
  return (
    <>
      {rows.map(([name, base, candidate, unit]) => (
        <tr key={name}>
          <td>{name}</td>
          <td className="num">{base === null ? '–' : formatNumber(base / unit)}</td>
          <td className="num">{candidate === null ? '–' : formatNumber(candidate / unit)}</td>
          <td className="num">{base && candidate ? formatSignedRatio(candidate / base - 1) : '–'}</td>
          <td className="dim" title="The sentences above have the verdict">
            –
          </td>
        </tr>
      ))}
      <tr>
        <td>Device time with known FLOPs or bytes</td>
        <td className="num">{coverage.base === null ? '–' : formatRatio(coverage.base)}</td>
        <td className="num">{coverage.candidate === null ? '–' : formatRatio(coverage.candidate)}</td>
        <td className="num">
          {coverage.delta_share === null ? '–' : formatSignedPoints(coverage.delta_share)}
        </td>
        <td className="dim" title="The sentences above have the verdict">
          –
        </td>
      </tr>
    </>
  );
}

/** The typical step of the headline, which of engines is per token; with several recordings the mean of their means. */
function TypicalStep({
  payload: { step, base, candidate, serving, step_noun: noun },
}: {
  payload: DiffPayload;
}) {
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
  const isPerToken = serving.some(phase => phase.per_token.base_ns !== null);
  return (
    <TimeRow
      name={isPerToken ? 'Average iteration of all phases' : `Typical ${noun}, as in the headline`}
      change={typical}
    />
  );
}

interface TimeRowProps {
  name: string;
  fullName?: string;
  change: DiffPayload['step'];
  /** Whether the verdict is about this time. */
  judged?: boolean;
}

function TimeRow({ name, fullName, change, judged = true }: TimeRowProps) {
  return (
    <tr>
      <td title={fullName}>{name}</td>
      <td className="num">{change.base_ns === null ? '–' : formatDuration(change.base_ns)}</td>
      <td className="num">{change.candidate_ns === null ? '–' : formatDuration(change.candidate_ns)}</td>
      <td className="num">
        {change.delta_ns === null ? '–' : formatSignedDuration(change.delta_ns)}
        {change.delta_ratio !== null && change.delta_ns !== 0 && (
          <span className="dim"> {formatSignedRatio(change.delta_ratio)}</span>
        )}
      </td>
      <td>{judged && change.delta_ns !== null && <Verdict change={change} />}</td>
    </tr>
  );
}
