import { SegmentedControl } from '@mantine/core';
import css from './Choice.module.css';

interface Props<T extends string> {
  name: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onPick: (value: T) => void;
}

const CLASSES = {
  root: css.root,
  control: css.control,
  input: css.input,
  label: css.label,
  indicator: css.indicator,
};

/** A few alternatives side by side, one of them selected. */
export function Choice<T extends string>({ name, value, options, onPick }: Props<T>) {
  return (
    <SegmentedControl
      unstyled
      classNames={CLASSES}
      aria-label={name}
      value={value}
      data={options.map(([key, title]) => ({ value: key, label: title }))}
      onChange={onPick}
    />
  );
}
