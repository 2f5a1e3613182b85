import css from './Meter.module.css';

/** A bar filled to a share of its width. */
export function Meter({ ratio, color }: { ratio: number; color: string }) {
  return (
    <span className={css.meter} aria-hidden="true">
      <i style={{ width: `${Math.min(Math.max(ratio, 0), 1) * 100}%`, background: color }} />
    </span>
  );
}
