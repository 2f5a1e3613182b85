// What is drawn while a part of the answer is still missing.
import type { ReactNode } from 'react';
import css from './Pending.module.css';

/** How many files of a job have been read, while others are still being read. */
export function FilesProgress({
  done,
  total,
  children,
}: {
  done: number;
  total: number;
  children: ReactNode;
}) {
  return (
    <p className={css.progress} role="status">
      <progress value={done} max={total} /> {children}
    </p>
  );
}

/** Invisible words as wide as `letters` letters, so that text that comes later moves nothing below it. */
export function ReservedWidth({ letters }: { letters: number }) {
  return (
    <span aria-hidden="true" style={{ visibility: 'hidden' }}>
      {' '}
      {'words '.repeat(Math.ceil(letters / 6))}
    </span>
  );
}
