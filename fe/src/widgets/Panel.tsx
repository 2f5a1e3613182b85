import type { ReactNode } from 'react';

interface Props {
  title: ReactNode;
  note?: ReactNode;
  actions?: ReactNode;
  className?: string;
  children: ReactNode;
}

export function Panel({ title, note, actions, className, children }: Props) {
  return (
    <section className={`panel ${className ?? ''}`}>
      <header className="panel-head">
        <h2>{title}</h2>
        {note && <span className="note">{note}</span>}
        {actions && <span className="actions">{actions}</span>}
      </header>
      <div className="panel-body">{children}</div>
    </section>
  );
}
