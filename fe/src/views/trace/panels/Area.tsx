// The selected window of one trace: totals by name, and how busy the devices are.
import { useMemo, type ReactNode } from 'react';
import type { TraceSelection } from '../../../api/types';
import { familyColor } from '../../../base/family';
import { formatDuration, plural } from '../../../base/format';
import type { TableSearch } from '../../../state/table';
import { Button } from '../../../widgets/inputs/Button';
import { Sentence } from '../../../widgets/Sentence';
import type { Column } from '../../../widgets/table/columns';
import { AreaFrame, nameColumn } from './AreaFrame';
import css from './AreaFrame.module.css';

interface Props {
  selection: TraceSelection;
  choice: ReactNode;
  classes: readonly string[];
  time: (ns: number) => string;
  onEvent: (event: number) => void;
  onZoom: () => void;
  onClose: () => void;
}

type Row = TraceSelection['rows'][number];

export function Area({ selection, choice, classes, time, ...ways }: Props) {
  const length = selection.end_ns - selection.begin_ns;
  const columns = useMemo<Column<Row>[]>(
    () => [
      nameColumn(row => ({ short: row.short_name, category: classes[row.color] ?? 'other' })),
      {
        id: 'family',
        title: 'Family',
        kind: 'text',
        width: 130,
        value: row => row.family,
        reason: 'No device work',
        render: row => row.family && <Family family={row.family} />,
      },
      { id: 'count', title: 'Slices', kind: 'count', value: row => row.count },
      {
        id: 'total_ns',
        title: 'Time in selection',
        kind: 'duration',
        value: row => row.total_ns,
        bar: { of: length, color: 'var(--c-other)', percent: true },
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
      name="selection"
      length={length}
      from={time(selection.begin_ns)}
      summary={<Summary selection={selection} />}
      choice={choice}
      rows={selection.rows}
      columns={columns}
      first="total_ns"
      names={selection.names}
      eventOf={row => row.event}
      searchText={row => `${row.name}\n${row.short_name}\n${row.family ?? ''}`}
      before={(search, setSearch) => families(selection.families, search, setSearch)}
      {...ways}
    />
  );
}

/** How each device spends the window. */
export const Summary = ({ selection }: { selection: TraceSelection }) =>
  selection.summary.map((text, i) => (
    <span key={selection.devices[i]?.device ?? 'none'}>
      <Sentence text={text} />
    </span>
  ));

const families = (
  found: TraceSelection['families'],
  search: TableSearch,
  setSearch: (search: TableSearch) => void,
): ReactNode =>
  found.length > 0 && (
    <div className={css.families}>
      {found.map(({ family, count, total_ns }) => (
        <Button
          key={family}
          look="text"
          title={`${plural(count, 'slice')}: show only these`}
          onClick={() => setSearch({ text: search.text === family ? '' : family, regex: false })}
        >
          <Family family={family} /> {formatDuration(total_ns)}
        </Button>
      ))}
    </div>
  );

function Family({ family }: { family: string }) {
  return (
    <span className="clip">
      <i className="dot" style={{ background: familyColor(family) }} /> {family}
    </span>
  );
}
