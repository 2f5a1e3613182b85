import type { ReactNode } from 'react';
import { useSelection } from '../../../state/selection';
import { Icon } from '../../../widgets/Icon';
import { Button } from '../../../widgets/inputs/Button';
import { CopyButton } from '../../../widgets/inputs/CopyButton';
import rowDetailCss from '../../../widgets/table/RowDetail.module.css';

interface Props {
  /** The slice that stands for the row. */
  event: number;
  name: string;
  label: string;
  /** Further ways. */
  children?: ReactNode;
}

/** Where the details of a row lead: to its slice, elsewhere, to the clipboard. */
export function Ways({ event, name, label, children }: Props) {
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
