import { Checkbox as MantineCheckbox } from '@mantine/core';
import type { ReactNode } from 'react';
import css from './Checkbox.module.css';

interface Props {
  label: ReactNode;
  checked: boolean;
  disabled?: boolean;
  title?: string;
  onChange: (checked: boolean) => void;
}

const CLASSES = { body: css.body, labelWrapper: css.label, input: css.input, icon: css.icon };

/** A checkbox in front of its label. */
export function Checkbox({ title, onChange, ...rest }: Props) {
  return (
    <MantineCheckbox
      unstyled
      classNames={CLASSES}
      wrapperProps={{ title }}
      onChange={event => onChange(event.currentTarget.checked)}
      {...rest}
    />
  );
}
