import css from './Canvas.module.css';

/** Said to those who turn the wheel and may have meant something else; it fades by itself. */
export function WheelHint({ onFaded }: { onFaded: () => void }) {
  return (
    <p className={css.hint} data-part="wheel-hint" role="status" onAnimationEnd={onFaded}>
      <kbd>Ctrl</kbd> or <kbd>⌘</kbd> + wheel, or a pinch, zooms · <kbd>Shift</kbd> + wheel pans
    </p>
  );
}
