import type { SequenceRow, SequencesPayload } from '../../api/types';
import { formatCount, formatDuration, formatLimit, formatRatio, plural } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Panel } from '../../widgets/Panel';
import { pickParams } from './select';
import { Sentence } from '../../widgets/Sentence';
import css from './Panels.module.css';

/** Px. */
const WIDTH = 160;

/** Table of device work that repeats in the same order. */
export function Sequences() {
  const { selection, select } = useSelection();
  const { run, worker, span, params } = selection;
  const requested = pickParams(params, 'device', 'stream');
  const answer = useView<SequencesPayload>('idle/sequences', { run, worker, span }, requested);
  const payload = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  return (
    <Panel title="Sequences" note="work that repeats in the same order" pending={!payload && !answer.error}>
      {answer.error && <p className="status error">{answer.error.message}</p>}
      {payload && <p className={css.finding}>{coverageSentence(payload)}</p>}
      {payload && payload.rows.length > 0 && (
        <div className="scroll">
          <table className={css.table} aria-label="Sequences">
            <thead>
              <tr>
                <th>Pattern</th>
                <th className="num">Runs × items</th>
                <th>Launched in</th>
                <th className="num">Device time</th>
                <th className="num">Fusion saves about</th>
                <th className="num">Graph capture saves up to</th>
              </tr>
            </thead>
            <tbody>
              {payload.rows.map((row, i) => (
                <tr key={i}>
                  <td>
                    <Button
                      look="bare"
                      title="Show the first run on the timeline"
                      onClick={() =>
                        select({ view: 'trace', params: { event: String(row.items[0]!.event) } })
                      }
                    >
                      <Pattern row={row} />
                    </Button>
                  </td>
                  <td className="num">
                    {formatCount(row.runs)} × {formatCount(row.length)}
                  </td>
                  <td className="clip" title={row.around ?? undefined}>
                    {row.around ?? <span className="dim">several places</span>}
                  </td>
                  <td className="num">{formatRatio(row.share)}</td>
                  <td className="num">{row.fusion_ns > 0 ? formatDuration(row.fusion_ns) : '–'}</td>
                  <td className="num">
                    {row.capture_ns ? formatLimit(row.capture_ns) : row.capture_ns === 0 ? 'nothing' : '–'}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {payload?.reasons.capture_ns && (
        <p className="dim">
          <Sentence text={payload.reasons.capture_ns} />
        </p>
      )}
    </Panel>
  );
}

function coverageSentence({ rows, share }: SequencesPayload): string {
  if (rows.length === 0) {
    return 'No sequence of different items repeats at least three times, and twice per step.';
  }
  const covers = share === null ? '' : ` and cover ${formatRatio(share)} of the device time`;
  return `${formatCount(rows.length)} ${rows.length === 1 ? 'sequence repeats' : 'sequences repeat'}${covers}.`;
}

/** The items of a run side by side: width shows duration, shade the name. */
function Pattern({ row }: { row: SequenceRow }) {
  return (
    <svg width={WIDTH} height={12} role="img" aria-label={plural(row.length, 'item')}>
      {stripes(row).map(({ event, x, width, shade, title }) => (
        <rect
          key={event}
          x={x}
          width={width}
          height={12}
          style={{ fill: `color-mix(in srgb, var(--c-kernel) ${shade}%, var(--sf))` }}
        >
          <title>{title}</title>
        </rect>
      ))}
    </svg>
  );
}

function stripes({ items }: SequenceRow) {
  const total = items.reduce((sum, item) => sum + item.duration_ns, 0);
  const names = [...new Set(items.map(item => item.name))];
  let x = 0;
  return items.map(({ event, name, short_name, duration_ns: ns }) => {
    const width = total > 0 ? (WIDTH * ns) / total : WIDTH / items.length;
    x += width;
    return {
      event,
      x: x - width,
      width: Math.max(width - 0.6, 0.4),
      shade: 100 - (70 * names.indexOf(name)) / Math.max(names.length, 1),
      title: `${short_name} ${formatDuration(ns)}`,
    };
  });
}
