import type { ReactNode } from 'react';
import { Button } from '../../../widgets/inputs/Button';
import { Icon } from '../../../widgets/Icon';
import css from './PanelHead.module.css';

interface Props {
  /** The color of what it is about. */
  color?: string;
  title: ReactNode;
  /** The whole title, where a part of it is shown. */
  whole?: string;
  actions?: ReactNode;
  onZoom: () => void;
  onClose: () => void;
}

/** What is selected, and the way to it and out of it. */
export function PanelHead({ color, title, whole, actions, onZoom, onClose }: Props) {
  return (
    <header className={css.head}>
      {color && <i className="dot" style={{ background: color }} />}
      <h2 className="clip" title={whole}>
        {title}
      </h2>
      <span className={css.actions}>
        {actions}
        <Button look="quiet" title="Zoom to it (f)" onClick={onZoom}>
          <Icon name="fit" size={14} />
        </Button>
        <Button look="quiet" title="Close (Escape)" onClick={onClose}>
          <Icon name="close" size={14} />
        </Button>
      </span>
    </header>
  );
}
