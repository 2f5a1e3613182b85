import css from './Choice.module.css';
interface Props<T extends string> {
  name: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onPick: (value: T) => void;
}

/** A few alternatives side by side, one of them pressed. */
export function Choice<T extends string>({ name, value, options, onPick }: Props<T>) {
  return (
    <span className={css.choice} role="group" aria-label={name}>
      {options.map(([option, title]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => onPick(option)}>
          {title}
        </button>
      ))}
    </span>
  );
}
