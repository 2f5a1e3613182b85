import type { CriticalPathPayload, PathCategory } from '../../api/types';
import { causeColor } from '../../base/causes';
import { exactDuration, formatDuration, formatRatio } from '../../base/format';
import { useSelection } from '../../state/selection';
import { FoldedLegend } from '../../widgets/charts/FoldedLegend';
import { Button } from '../../widgets/inputs/Button';
import { parseLink } from '../../widgets/Sentence';
import css from './PathBar.module.css';

const shade = (color: string, percent: number) => `color-mix(in srgb, var(${color}) ${percent}%, var(--sf))`;

/** Colors of device work and latencies; the host has those of the causes of idle time. */
const COLORS: Record<string, string> = {
  kernel: 'var(--c-kernel)',
  communication: 'var(--c-communication)',
  rank_wait: shade('--c-communication', 50),
  copy: 'var(--c-memcpy)',
  stream_wait: shade('--x-gap', 55),
  wake_up: shade('--x-latency', 65),
  hand_off: shade('--x-latency', 35),
};

const colorOf = ({ name }: PathCategory) => COLORS[name] ?? causeColor(name);

/** Bar of the path by category, with a legend; both open what a category counts. */
export function PathBar({ path }: { path: CriticalPathPayload['path'] }) {
  const { select } = useSelection();
  const open = ({ link }: PathCategory) => link !== null && select(parseLink(link));
  const share = (category: PathCategory) => category.time_ns / path.duration_ns;
  return (
    <>
      <div className={css.bar}>
        {path.categories.map(category => (
          // Keyboard users have the button in the legend.
          <Button
            key={category.name}
            look="bare"
            tabIndex={-1}
            disabled={category.link === null}
            aria-hidden
            title={`${category.title}: ${exactDuration(category.time_ns)}`}
            style={{ flexGrow: share(category), background: colorOf(category) }}
            onClick={() => open(category)}
          />
        ))}
      </div>
      <ul className={css.legend} aria-label="Parts of the path">
        <FoldedLegend entries={path.categories} timeOf={({ time_ns }) => time_ns} total={path.duration_ns}>
          {category => (
            <li key={category.name}>
              <i style={{ background: colorOf(category) }} />
              {category.link === null ? (
                category.title
              ) : (
                <Button look="link" title="Show" onClick={() => open(category)}>
                  {category.title}
                </Button>
              )}{' '}
              <b>{formatDuration(category.time_ns)}</b> · {formatRatio(share(category))}
            </li>
          )}
        </FoldedLegend>
      </ul>
    </>
  );
}
