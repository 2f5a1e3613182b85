import type { LaunchesPayload } from '../../api/types';
import { formatCount, formatDuration, formatRatio } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Panel } from '../../widgets/Panel';
import { pickParams } from './select';
import css from './Panels.module.css';

/** Table of the calls that submit work to the device. */
export function Launches() {
  const { selection, select } = useSelection();
  const { run, worker, span, params } = selection;
  const requested = pickParams(params, 'step', 'device', 'stream');
  const answer = useView<LaunchesPayload>('idle/launches', { run, worker, span }, requested);
  const payload = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  return (
    <Panel title="Launches" note="calls that submit work to the device" pending={!payload && !answer.error}>
      {answer.error && <p className="status error">{answer.error.message}</p>}
      {payload && (
        <>
          <p className={css.finding}>{shortWorkSentence(payload)}</p>
          <div className="scroll">
            <table className={css.table} aria-label="Launch calls">
              <thead>
                <tr>
                  <th>Call</th>
                  <th className="num">Calls</th>
                  <th className="num">Items</th>
                  <th className="num">Median call</th>
                  <th className="num">Total</th>
                  <th className="num">Median delay</th>
                  <th className="num">Short work</th>
                  <th className="num">Slow</th>
                  <th className="num">Delayed</th>
                </tr>
              </thead>
              <tbody>
                {payload.rows.map(row => (
                  <tr key={row.name}>
                    <td>
                      <Button
                        look="text"
                        className="mono"
                        title="Show the longest call on the timeline"
                        onClick={() => select({ view: 'trace', params: { event: String(row.event) } })}
                      >
                        {row.name}
                      </Button>
                    </td>
                    <td className="num">{formatCount(row.calls)}</td>
                    <td className="num">{formatCount(row.items)}</td>
                    <td className="num">{formatDuration(row.median_call_ns)}</td>
                    <td className="num">{formatDuration(row.call_ns)}</td>
                    <td className="num">{formatDuration(row.median_delay_ns)}</td>
                    <td className="num">{formatRatio(row.short / row.calls)}</td>
                    <td className="num">{formatCount(row.slow)}</td>
                    <td className="num">{formatCount(row.delayed)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {payload.rows.length > 0 && (
            <p className="dim">
              Slow: over {formatDuration(payload.slow_call_ns)}. Delayed: work that starts more than{' '}
              {formatDuration(payload.long_delay_ns)} after its call. {blockedSentence(payload)}
            </p>
          )}
        </>
      )}
    </Panel>
  );
}

function shortWorkSentence({ rows, unlinked }: LaunchesPayload): string {
  const calls = rows.reduce((sum, row) => sum + row.calls, 0);
  if (calls === 0) {
    return unlinked > 0
      ? "The launches of this device work weren't recorded, so their calls and delays are unknown."
      : 'No device work was launched here.';
  }
  const short = rows.reduce((sum, row) => sum + row.short, 0);
  return `${formatRatio(short / calls)} of the launch calls take longer than the work they launch.`;
}

function blockedSentence({ blocked_calls: calls, blocked_ns: ns }: LaunchesPayload): string {
  return calls === 0
    ? 'No call waited for a full queue.'
    : `${formatCount(calls)} waited for a full queue, ${formatDuration(ns)} longer than a typical launch.`;
}
