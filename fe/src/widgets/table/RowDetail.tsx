import type { ReactNode } from 'react';
import { Icon } from '../Icon';
import { Button } from '../inputs/Button';
import css from './RowDetail.module.css';

interface Props {
  /** Names the panel for those who do not see it. */
  label: string;
  title: ReactNode;
  /** The whole name, where the title is a short one. */
  whole?: string;
  /** The title is a name of the trace. */
  mono?: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** The panel beside a table that tells all of the chosen row. */
export function RowDetail({ label, title, whole, mono = false, onClose, children }: Props) {
  return (
    <aside className={css.detail} data-part="row-detail" aria-label={label}>
      <header>
        <h2 className={mono ? 'mono' : undefined} title={whole}>
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
