import { UnstyledButton } from '@mantine/core';
import type { ComponentProps } from 'react';

/** The classes in styles/controls.css; a bare button is styled by the component that it is a part of. */
const LOOKS = {
  framed: 'button',
  quiet: 'button quiet',
  primary: 'button primary',
  chip: 'chip',
  link: 'link',
  text: 'textlink',
  bare: '',
};

interface Props extends ComponentProps<'button'> {
  look?: keyof typeof LOOKS;
}

/** What is pressed: a framed button unless it has another look. */
export function Button({ look = 'framed', className = '', ...rest }: Props) {
  return <UnstyledButton className={`${LOOKS[look]} ${className}`.trim() || undefined} {...rest} />;
}
