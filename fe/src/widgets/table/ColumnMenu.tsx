import { Popover } from '@mantine/core';
import { Icon } from '../Icon';

interface Props {
  columns: { id: string; title: string; shown: boolean; toggle: (shown: boolean) => void }[];
}

/** Which columns are shown. */
export function ColumnMenu({ columns }: Props) {
  return (
    <Popover position="bottom-end" shadow="md" withinPortal trapFocus returnFocus>
      <Popover.Target>
        <button type="button" className="button quiet" title="Columns" aria-label="Columns">
          <Icon name="columns" size={14} />
        </button>
      </Popover.Target>
      <Popover.Dropdown className="menu">
        {columns.map(column => (
          <label key={column.id}>
            <input
              type="checkbox"
              checked={column.shown}
              onChange={event => column.toggle(event.target.checked)}
            />
            {column.title}
          </label>
        ))}
      </Popover.Dropdown>
    </Popover>
  );
}
