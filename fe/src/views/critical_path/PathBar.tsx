import type { CriticalPathPayload, PathCategory } from '../../api/types';
import { exactDuration, formatDuration, formatRatio } from '../../base/format';
import css from './PathBar.module.css';

const COLORS: Record<string, string> = {
  data_loading: 'var(--c-dataloader)',
  operator: 'var(--c-cpu_exec)',
  launch_call: 'var(--c-runtime)',
  kernel: 'var(--c-kernel)',
  communication: 'var(--c-communication)',
  copy: 'var(--c-memcpy)',
};

const colorOf = ({ name }: PathCategory) => COLORS[name] ?? 'var(--c-other)';

/** The categories of the path side by side, as wide as their time, each named below with it. */
export function PathBar({ path }: { path: CriticalPathPayload['path'] }) {
  const share = (category: PathCategory) => category.time_ns / path.duration_ns;
  return (
    <>
      <div className={css.bar}>
        {path.categories.map(category => (
          <span
            key={category.name}
            title={`${category.title}: ${exactDuration(category.time_ns)}`}
            style={{ flexGrow: share(category), background: colorOf(category) }}
          />
        ))}
      </div>
      <ul className={css.legend}>
        {path.categories.map(category => (
          <li key={category.name}>
            <i style={{ background: colorOf(category) }} />
            {category.title} <b>{formatDuration(category.time_ns)}</b> · {formatRatio(share(category))}
          </li>
        ))}
      </ul>
    </>
  );
}
