// Counters in the selected window.
import { useMemo, type ReactNode } from 'react';
import type { TraceCounters, TracePayload, TraceSelection } from '../../../api/types';
import { counterFormat } from '../../../base/format';
import { trackName } from '../../../timeline/draw/layout';
import { decodeSamples } from '../../../timeline/tiles/tile';
import type { Column } from '../../../widgets/table/columns';
import { Summary } from './Area';
import { AreaFrame } from './AreaFrame';

interface Props {
  counters: TraceCounters;
  selection: TraceSelection;
  choice: ReactNode;
  payload: TracePayload;
  time: (ns: number) => string;
  onZoom: () => void;
  onClose: () => void;
}

interface Row {
  key: string;
  name: string;
  unit: string;
  low: number;
  high: number;
  last: number;
}

export function SelectedCounters({ counters, selection, choice, payload, time, onZoom, onClose }: Props) {
  const rows = useMemo(() => counterRows(counters, payload), [counters, payload]);
  const columns = useMemo<Column<Row>[]>(
    () => [
      { id: 'name', title: 'Counter', kind: 'text', value: row => row.name },
      { id: 'unit', title: 'Unit', kind: 'text', value: row => row.unit, width: 80, hidden: true },
      valueColumn('low', 'Min'),
      valueColumn('high', 'Max'),
      valueColumn('last', 'Last'),
    ],
    [],
  );
  return (
    <AreaFrame
      name="selected counters"
      length={selection.end_ns - selection.begin_ns}
      from={time(selection.begin_ns)}
      summary={<Summary selection={selection} />}
      choice={choice}
      noun="counter"
      rows={rows}
      columns={columns}
      first="name"
      names={rows.length}
      eventOf={() => null}
      onEvent={() => undefined}
      onZoom={onZoom}
      onClose={onClose}
    />
  );
}

const valueColumn = (id: 'low' | 'high' | 'last', title: string): Column<Row> => ({
  id,
  title,
  kind: 'number',
  width: 110,
  value: row => row[id],
  render: row => counterFormat(row.unit)(row[id]),
});

/** Return min, max, and last value of each counter in the window, rounded to its buckets. */
function counterRows(counters: TraceCounters, payload: TracePayload): Row[] {
  const { series, low, high, last } = decodeSamples(counters);
  return payload.tracks.flatMap(track => {
    const [from, to] = series.get(track.id) ?? [0, 0];
    return to > from
      ? [
          {
            key: String(track.id),
            name: trackName(track, payload),
            unit: track.unit,
            low: Math.min(...low.slice(from, to)),
            high: Math.max(...high.slice(from, to)),
            last: last[to - 1]!,
          },
        ]
      : [];
  });
}
