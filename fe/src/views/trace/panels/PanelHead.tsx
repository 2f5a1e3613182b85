import type { ReactNode } from 'react';
import type { TraceRef } from '../../../api/types';
import { Icon } from '../../../widgets/Icon';
import { Button } from '../../../widgets/inputs/Button';
import css from './PanelHead.module.css';

interface PanelHeadProps {
  /** Color of the selected item. */
  color?: string;
  title: ReactNode;
  /** The full title, shown on hover. */
  fullTitle?: string;
  actions?: ReactNode;
  onZoom: () => void;
  onClose: () => void;
}

/** The heading of a panel: its title, its actions, and the buttons that zoom and close. */
export function PanelHead({ color, title, fullTitle, actions, onZoom, onClose }: PanelHeadProps) {
  return (
    <header className={css.head}>
      {color && <i className="dot" style={{ background: color }} />}
      <h2 className="clip" title={fullTitle}>
        {title}
      </h2>
      <span className={css.actions}>
        {actions}
        <Button look="quiet" title="Zoom to the selection (f)" onClick={onZoom}>
          <Icon name="fit" size={14} />
        </Button>
        <Button look="quiet" title="Close (Escape)" onClick={onClose}>
          <Icon name="close" size={14} />
        </Button>
      </span>
    </header>
  );
}

interface SliceLinkProps {
  label: string;
  to: TraceRef;
  onEvent: (event: number) => void;
}

/** A link to another slice by its short name; the full name is shown on hover. */
export function SliceLink({ label, to, onEvent }: SliceLinkProps) {
  return (
    <span>
      <span className="dim">{label}</span>{' '}
      <Button look="text" className="clip" title={to.name} onClick={() => onEvent(to.event)}>
        {to.short_name}
      </Button>
    </span>
  );
}
