import type { ReactNode } from 'react';
import { formatDuration } from '../../../base/format';
import { Button } from '../../../widgets/inputs/Button';
import { Icon } from '../../../widgets/Icon';
import css from './AreaFrame.module.css';

interface Props {
  /** ns of the selected window. */
  length: number;
  from: string;
  summary: ReactNode;
  onZoom: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** What is around the table of a selected window, of one trace or of several. */
export function AreaFrame({ length, from, summary, onZoom, onClose, children }: Props) {
  return (
    <section className={css.area} data-part="selected-area" aria-label="Selected window">
      <header>
        <h2>
          Selected {formatDuration(length)} <span className="dim">from {from}</span>
        </h2>
        <span className={css.actions}>
          <Button look="quiet" onClick={onZoom}>
            Zoom in <kbd>f</kbd>
          </Button>
          <Button look="quiet" title="Close (Escape)" onClick={onClose}>
            <Icon name="close" size={14} />
          </Button>
        </span>
      </header>
      <p className={css.devices} data-part="area-devices">
        {summary}
      </p>
      {children}
    </section>
  );
}
