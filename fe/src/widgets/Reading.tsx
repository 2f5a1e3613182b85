import type { ReactNode } from 'react';
import css from './Reading.module.css';

/** How many of the files of a job are read, while others still are. */
export function Reading({ read, of, children }: { read: number; of: number; children: ReactNode }) {
  return (
    <p className={css.reading} role="status">
      <progress value={read} max={of} /> {children}
    </p>
  );
}
