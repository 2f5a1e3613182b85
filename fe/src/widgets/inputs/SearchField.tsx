import { TextInput } from '@mantine/core';
import type { ComponentProps, ReactNode } from 'react';
import { Icon } from '../Icon';
import { Button } from './Button';
import css from './SearchField.module.css';

interface Props extends Omit<ComponentProps<'input'>, 'size' | 'onChange'> {
  placeholder: string;
  /** What is wrong with the text, shown below it, or just true. */
  error?: string | boolean;
  /** Drawn at the right end: the shortcut, a count, toggles. */
  tools: ReactNode;
  onChange: (text: string) => void;
}

const CLASSES = {
  root: css.root,
  wrapper: css.wrapper,
  input: css.input,
  section: css.section,
  error: css.error,
};

/** A search field with its tools in the same frame. */
export function SearchField({ placeholder, error, tools, onChange, ...rest }: Props) {
  return (
    <TextInput
      unstyled
      classNames={CLASSES}
      placeholder={placeholder}
      aria-label={placeholder}
      spellCheck={false}
      error={error}
      errorProps={{ role: 'alert' }}
      leftSection={<Icon name="search" size={14} />}
      rightSection={tools}
      onChange={event => onChange(event.currentTarget.value)}
      {...rest}
    />
  );
}

interface ToggleProps {
  pressed: boolean;
  title: string;
  onToggle: (pressed: boolean) => void;
}

/** The toggle that makes the text a regular expression. */
export function RegexToggle({ pressed, title, onToggle }: ToggleProps) {
  return (
    <Button
      look="bare"
      className={css.toggle}
      aria-pressed={pressed}
      title={title}
      aria-label="Regular expression"
      onClick={() => onToggle(!pressed)}
    >
      .*
    </Button>
  );
}
