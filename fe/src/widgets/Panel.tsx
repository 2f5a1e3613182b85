import type { ReactNode } from 'react';
import css from './Panel.module.css';

interface Props {
  title: ReactNode;
  note?: ReactNode;
  actions?: ReactNode;
  className?: string;
  /** Whether its content is still computed; what stands below waits for its height. */
  pending?: boolean;
  children: ReactNode;
}

export function Panel({ title, note, actions, className, pending = false, children }: Props) {
  return (
    <section
      className={`panel ${pending ? 'pending' : ''} ${className ?? ''}`}
      aria-busy={pending || undefined}
    >
      <header className={css.head}>
        <h2>{title}</h2>
        {note && <span className={css.note}>{note}</span>}
        {actions && <span className={css.actions}>{actions}</span>}
      </header>
      <div className={css.body}>{children}</div>
    </section>
  );
}
