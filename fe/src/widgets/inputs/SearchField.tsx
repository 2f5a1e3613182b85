import { TextInput } from '@mantine/core';
import type { ComponentProps, ReactNode } from 'react';
import { Icon } from '../Icon';
import { Button } from './Button';
import css from './SearchField.module.css';

interface Props extends Omit<ComponentProps<'input'>, 'size' | 'onChange'> {
  placeholder: string;
  /** What is wrong with the text: a sentence shown below it, or only that something is. */
  error?: string | boolean;
  /** Behind the text: the key that leads here, a count, toggles. */
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

/** What to look for, behind a magnifying glass, with the tools of the search in the same frame. */
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

/** Whether the text is a regular expression. */
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
