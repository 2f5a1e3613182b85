import { TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import css from './TextField.module.css';

interface Props {
  /** Above the field. */
  label?: ReactNode;
  /** The accessible name of a field without a label. */
  name?: string;
  value: string;
  placeholder: string;
  /** In a monospaced font, for paths and patterns. */
  mono?: boolean;
  onChange: (value: string) => void;
}

/** A field for one line of text. */
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
