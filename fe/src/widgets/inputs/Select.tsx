import css from './Select.module.css';
interface Props<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

/** A small choice beside its name. */
export function Select<T extends string>({ label, value, options, onChange }: Props<T>) {
  return (
    <label className={css.select}>
      <span className="dim">{label}</span>
      <select value={value} onChange={event => onChange(event.target.value as T)}>
        {options.map(([key, title]) => (
          <option key={key} value={key}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}
