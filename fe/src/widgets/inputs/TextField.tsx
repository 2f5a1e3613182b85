import { TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import css from './TextField.module.css';

interface Props {
  /** Above the field; a field without it is named by `name`. */
  label?: ReactNode;
  name?: string;
  value: string;
  placeholder: string;
  /** In the type of code: a path, a pattern. */
  mono?: boolean;
  onChange: (value: string) => void;
}

/** A line of text. */
export function TextField({ label, name, mono = false, onChange, ...rest }: Props) {
  return (
    <TextInput
      unstyled
      classNames={{ root: css.root, input: `${css.input} ${mono ? css.mono : ''}` }}
      label={label}
      aria-label={name}
      spellCheck={false}
      onChange={event => onChange(event.currentTarget.value)}
      {...rest}
    />
  );
}
