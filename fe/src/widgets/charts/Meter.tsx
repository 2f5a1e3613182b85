import css from './Meter.module.css';
/** A share as a bar. */
export function Meter({ ratio, color }: { ratio: number; color: string }) {
  return (
    <span className={css.meter} aria-hidden="true">
      <i style={{ width: `${Math.min(Math.max(ratio, 0), 1) * 100}%`, background: color }} />
    </span>
  );
}
