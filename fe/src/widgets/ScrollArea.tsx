import type { ReactNode } from 'react';

interface Props {
  label: string;
  children: ReactNode;
}

/** A part of a panel that is scrolled sideways by itself, also by keyboard. */
export function ScrollArea({ label, children }: Props) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the arrow keys scroll what has the focus
    <div className="scroll" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
