import { NativeSelect } from '@mantine/core';
import { Icon } from '../Icon';
import css from './Select.module.css';

interface Props<T extends string> {
  label: string;
  /** What it is called where no label stands beside it. */
  name?: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

const CLASSES = {
  root: css.root,
  label: 'dim',
  wrapper: css.wrapper,
  input: css.input,
  section: css.section,
};

/** A small choice beside its name. */
export function Select<T extends string>({ label, name, value, options, onChange }: Props<T>) {
  return (
    <NativeSelect
      unstyled
      classNames={CLASSES}
      label={label}
      aria-label={name}
      value={value}
      data={options.map(([key, title]) => ({ value: key, label: title }))}
      rightSection={<Icon name="chevron" size={12} />}
      onChange={event => onChange(event.currentTarget.value as T)}
    />
  );
}
