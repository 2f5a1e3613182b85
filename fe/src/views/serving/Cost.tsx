import { scaleLinear } from 'd3-scale';
import type { CostTerm, ServingPayload } from '../../api/types';
import { formatCount, formatDuration } from '../../base/format';
import { useWidth } from '../../widgets/charts/useWidth';
import css from './index.module.css';

/** Layout, px. */
const HEIGHT = 150;
const LEFT = 56;
/** Most points drawn: about one for each pixel of the width. */
const MAX_POINTS = 600;

/** The measured iterations and what each thing in a batch costs, or why that is unknown. */
export function Cost({ payload }: { payload: ServingPayload }) {
  const { cost } = payload;
  const terms: [string, CostTerm, number][] = [
    ['Each iteration', cost.fixed_ns, 1],
    ['+ each decoding request', cost.per_request_ns, 1],
    ['+ 1,000 KV tokens', cost.per_kv_token_ns, 1000],
    ['+ 1,000 prompt tokens', cost.per_prompt_token_ns, 1000],
  ];
  return (
    <>
      <Scatter payload={payload} />
      <dl className={css.terms}>
        {terms.map(([title, term, scale]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>
              {term.value === null ? (
                <span className="dim">unknown</span>
              ) : (
                `${formatDuration(scale * term.value)} ± ${formatDuration((scale * ((term.high ?? 0) - (term.low ?? 0))) / 2)}`
              )}
            </dd>
            {term.value === null && <dd className={`dim ${css.reason}`}>{term.reason}</dd>}
          </div>
        ))}
      </dl>
      {cost.one_batch && (
        <p className={css.note}>
          {`A decode iteration with ${cost.one_batch.requests} requests takes ${formatDuration(cost.one_batch.duration_ns)}.`}
        </p>
      )}
      {cost.graph_sizes.length > 0 && (
        <p className={css.note}>
          {`The times rise in steps: batches are padded to ${formatList(cost.graph_sizes)} requests, and each place of a padded batch costs as much as a request.`}
        </p>
      )}
    </>
  );
}

/** Most captured batch sizes that are named. */
const MAX_SIZES = 8;

/** "8, 16 and 24", the first of many. */
function formatList(sizes: number[]): string {
  const shown = sizes.slice(0, MAX_SIZES).map(formatCount);
  const rest = sizes.length - shown.length;
  return rest > 0 ? `${shown.join(', ')} … (${formatCount(rest)} more)` : shown.join(', ');
}

function Scatter({ payload }: { payload: ServingPayload }) {
  const { ref, width } = useWidth();
  const { iterations: columns } = payload;
  const byKv = columns.kv_tokens.every(value => value !== null);
  const values = byKv ? columns.kv_tokens : columns.requests;
  const decodes = columns.phase.flatMap((phase, i) => (phase === 'decode' && values[i] !== null ? [i] : []));
  if (decodes.length < 2) {
    return null;
  }
  const step = Math.ceil(decodes.length / MAX_POINTS);
  const points = decodes
    .filter((_, i) => i % step === 0)
    .map(i => [values[i]!, columns.busy_ns[i]!] as const);
  const [xs, ys] = [points.map(([value]) => value), points.map(([, ns]) => ns)];
  const [least, most] = [Math.min(...xs), Math.max(...xs)];
  const x = scaleLinear([least, Math.max(most, least + 1)], [LEFT + 6, Math.max(width - 8, LEFT + 7)]);
  const y = scaleLinear([Math.min(...ys) * 0.98, Math.max(...ys) * 1.02], [HEIGHT - 24, 8]);
  return (
    <div ref={ref} className={css.scatter} data-part="cost-points">
      {width > LEFT && (
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label="Time of decode iterations by what is in the batch"
        >
          {y.ticks(3).map(tick => (
            <g key={tick}>
              <line className={css.grid} x1={LEFT} x2={width} y1={y(tick)} y2={y(tick)} />
              <text className="dim" x={LEFT - 6} y={y(tick) + 4} textAnchor="end">
                {formatDuration(tick)}
              </text>
            </g>
          ))}
          {points.map(([value, ns], i) => (
            <circle key={i} className={css.point} cx={x(value)} cy={y(ns)} r={2} />
          ))}
          <text className="dim" x={width} y={HEIGHT - 6} textAnchor="end">
            {`${byKv ? 'KV tokens' : 'requests'} in a decode batch, ${formatCount(least)} to ${formatCount(most)}`}
          </text>
        </svg>
      )}
    </div>
  );
}
