import type { ReactNode } from 'react';
import { Icon } from '../Icon';
import { Button } from '../inputs/Button';
import css from './RowDetail.module.css';

interface Props {
  /** The accessible name of the panel. */
  label: string;
  title: ReactNode;
  /** The full name, where the title is a shortened one. */
  fullName?: string;
  /** Draw the title in a monospaced font, because it is a name from the trace. */
  mono?: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** The panel beside a table with the details of the selected row. */
export function RowDetail({ label, title, fullName, mono = false, onClose, children }: Props) {
  return (
    <aside className={css.detail} data-part="row-detail" aria-label={label}>
      <header>
        <h2 className={mono ? 'mono' : undefined} title={fullName}>
          {title}
        </h2>
        <Button look="quiet" title="Close (Escape)" onClick={onClose}>
          <Icon name="close" size={14} />
        </Button>
      </header>
      {children}
    </aside>
  );
}
