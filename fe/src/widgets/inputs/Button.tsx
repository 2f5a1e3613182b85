import { UnstyledButton } from '@mantine/core';
import type { ComponentProps } from 'react';

/** Classes in styles/controls.css; a bare button is styled by the component that contains it. */
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

/** A button, framed unless it has another look. */
export function Button({ look = 'framed', className = '', ...rest }: Props) {
  return <UnstyledButton className={`${LOOKS[look]} ${className}`.trim() || undefined} {...rest} />;
}
