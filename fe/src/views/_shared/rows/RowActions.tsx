import type { ReactNode } from 'react';
import { useSelection } from '../../../state/selection';
import { Icon } from '../../../widgets/Icon';
import { Button } from '../../../widgets/inputs/Button';
import { CopyButton } from '../../../widgets/inputs/CopyButton';
import rowDetailCss from '../../../widgets/table/RowDetail.module.css';

interface Props {
  /** The slice to show for the row. */
  event: number;
  name: string;
  label: string;
  /** Further buttons. */
  children?: ReactNode;
}

/** Buttons in the details of a row: show it on the timeline, further links, copy its name. */
export function RowActions({ event, name, label, children }: Props) {
  const { select } = useSelection();
  return (
    <div className={rowDetailCss.actions}>
      <Button className="strong" onClick={() => select({ view: 'trace', params: { event: String(event) } })}>
        <Icon name="timeline" size={14} /> Show on timeline
      </Button>
      {children}
      <CopyButton label={label} showLabel text={() => name} />
    </div>
  );
}
