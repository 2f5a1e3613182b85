import { Popover } from '@mantine/core';
import { Button } from '../inputs/Button';
import { Checkbox } from '../inputs/Checkbox';
import { Icon } from '../Icon';

interface Props {
  columns: { id: string; title: string; shown: boolean; toggle: (shown: boolean) => void }[];
}

/** Which columns are shown. */
export function ColumnMenu({ columns }: Props) {
  return (
    <Popover position="bottom-end" shadow="md" withinPortal trapFocus returnFocus>
      <Popover.Target>
        <Button look="quiet" title="Columns" aria-label="Columns">
          <Icon name="columns" size={14} />
        </Button>
      </Popover.Target>
      <Popover.Dropdown className="menu">
        {columns.map(column => (
          <Checkbox key={column.id} label={column.title} checked={column.shown} onChange={column.toggle} />
        ))}
      </Popover.Dropdown>
    </Popover>
  );
}
