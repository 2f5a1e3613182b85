import { useMemo, type ReactNode } from 'react';
import type { ModuleClass, ModuleRow } from '../../../api/types';
import { plural } from '../../../base/format';
import { useSelection } from '../../../state/selection';
import { useTableState } from '../../../state/table';
import { DataTable } from '../../../widgets/table/DataTable';
import { classColumns, moduleColumns, totalHost } from './columns';
import { Choice } from '../../../widgets/inputs/Choice';
import { timelineTarget, initiallyExpanded } from './select';
import type { Phrase } from '../../../base/text';

interface Props {
  name: string;
  rows: ModuleRow[];
  classes: ModuleClass[];
  deviceTime: number;
  hasBackward: boolean;
  reasons: Record<string, readonly Phrase[]>;
  place: number | undefined;
  onPlace: (place: number | undefined) => void;
  foot?: ReactNode;
}

/** The table of modules, as a tree or summed by class. */
export function Tree(props: Props) {
  const { name, rows, classes, deviceTime, hasBackward, reasons, place, onPlace, foot } = props;
  const { selection, select } = useSelection();
  const grouped = selection.params.group_by === 'class';
  const table = useTableState(
    grouped ? { id: deviceTime > 0 ? 'device_self_ns' : 'host_exclusive_ns', descending: true } : undefined,
  );
  const shape = useMemo(
    () => ({
      device: deviceTime > 0,
      backward: hasBackward,
      deviceTime,
      hostTime: grouped
        ? classes.reduce((sum, row) => sum + (row.host_exclusive_ns ?? 0), 0)
        : totalHost(rows),
      reasons,
    }),
    [rows, classes, deviceTime, hasBackward, reasons, grouped],
  );
  const columns = useMemo(() => moduleColumns(shape), [shape]);
  const byClass = useMemo(() => classColumns(shape), [shape]);
  const expanded = useMemo(() => initiallyExpanded(rows), [rows]);
  const open = (row: ModuleRow) =>
    row.event !== null && select(timelineTarget(row.event, name === 'modules'));
  const before = (
    <Choice
      name="Rows"
      value={grouped ? 'class' : 'tree'}
      options={[
        ['tree', 'Tree'],
        ['class', 'By class'],
      ]}
      onPick={picked => {
        const { group_by: _, sort: __, ...others } = selection.params;
        select({ params: picked === 'class' ? { ...others, group_by: 'class' } : others });
      }}
    />
  );
  const common = { ...table, before, foot };
  if (grouped) {
    return (
      <DataTable
        {...common}
        name={`${name}-classes`}
        noun="class"
        nounPlural="classes"
        rows={classes}
        columns={byClass}
        rowKey={row => row.name}
        placeholder={`Filter ${plural(classes.length, 'class', 'classes')}`}
        onSelect={row => onPlace(row?.place)}
      />
    );
  }
  return (
    <DataTable
      {...common}
      name={name}
      noun="outermost module"
      rows={rows}
      columns={columns}
      rowKey={row => String(row.place)}
      childRows={row => row.children}
      initiallyExpanded={expanded}
      placeholder="Filter modules"
      selected={place === undefined ? undefined : String(place)}
      onSelect={row => onPlace(row?.place)}
      onOpen={open}
    />
  );
}
