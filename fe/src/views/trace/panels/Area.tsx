// What happens in the selected window: totals by name, how busy the devices are.
import { useMemo, useState } from 'react';
import type { TraceSelection } from '../../../api/types';
import { plural } from '../../../base/format';
import { classColor } from '../../../timeline/draw/colors';
import { Sentence } from '../../../widgets/Sentence';
import type { Column } from '../../../widgets/table/columns';
import { DataTable, type Sort } from '../../../widgets/table/DataTable';
import type { Search } from '../../../widgets/table/search';
import { AreaFrame } from './AreaFrame';

interface Props {
  selection: TraceSelection;
  classes: readonly string[];
  time: (ns: number) => string;
  onEvent: (event: number) => void;
  onZoom: () => void;
  onClose: () => void;
}

type Row = TraceSelection['rows'][number];

export function Area({ selection, classes, time, onEvent, onZoom, onClose }: Props) {
  const [sort, setSort] = useState<Sort | undefined>({ id: 'total_ns', descending: true });
  const [search, setSearch] = useState<Search>({ text: '', regex: false });
  const length = selection.end_ns - selection.begin_ns;
  const columns = useMemo<Column<Row>[]>(
    () => [
      {
        id: 'name',
        title: 'Name',
        kind: 'text',
        value: row => row.name,
        render: row => (
          <span className="clip" title={row.name}>
            <i className="dot" style={{ background: classColor(classes[row.color] ?? 'other') }} />{' '}
            {row.short_name}
          </span>
        ),
      },
      { id: 'count', title: 'Slices', kind: 'count', value: row => row.count },
      {
        id: 'total_ns',
        title: 'Time in selection',
        kind: 'duration',
        value: row => row.total_ns,
        bar: { of: length, color: 'var(--c-kernel)', percent: true },
      },
      { id: 'self_ns', title: 'Self', kind: 'duration', value: row => row.self_ns },
      { id: 'mean_ns', title: 'Mean', kind: 'duration', value: row => row.mean_ns },
      { id: 'min_ns', title: 'Min', kind: 'duration', value: row => row.min_ns, hidden: true },
      { id: 'max_ns', title: 'Max', kind: 'duration', value: row => row.max_ns },
    ],
    [classes, length],
  );
  return (
    <AreaFrame
      length={length}
      from={time(selection.begin_ns)}
      summary={selection.summary.map((text, i) => (
        <span key={selection.devices[i]?.device ?? 'none'}>
          <Sentence text={text} />
        </span>
      ))}
      onZoom={onZoom}
      onClose={onClose}
    >
      <DataTable
        name="selection"
        rows={selection.rows}
        columns={columns}
        rowKey={row => row.name}
        sort={sort}
        onSort={setSort}
        search={search}
        onSearch={setSearch}
        hotkey={false}
        placeholder={`Filter ${plural(selection.names, 'name')}`}
        onOpen={row => onEvent(row.event)}
        onSelect={row => row && onEvent(row.event)}
        noun="name"
        empty="No slices in this selection."
      />
    </AreaFrame>
  );
}
