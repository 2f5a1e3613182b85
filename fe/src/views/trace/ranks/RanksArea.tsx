// What happens in the selected window on each rank, by name: what differs most between them comes first.
import { useMemo, useState } from 'react';
import type { Selectors, TraceSelection } from '../../../api/types';
import { plural } from '../../../base/format';
import { useEach } from '../../../state/queries';
import { classColor } from '../../../timeline/draw/colors';
import { mergedId } from '../../../timeline/tiles/merge';
import type { Span } from '../../../timeline/tiles/store';
import { Sentence } from '../../../widgets/Sentence';
import type { Column } from '../../../widgets/table/columns';
import { DataTable, type Sort } from '../../../widgets/table/DataTable';
import type { Search } from '../../../widgets/table/search';
import { range } from '../answers';
import { AreaFrame } from '../panels/AreaFrame';
import { workTracks } from '../select';
import type { Aligned } from './source';

interface Props {
  run: string;
  members: readonly Aligned[];
  area: Span;
  time: (ns: number) => string;
  onEvent: (event: number) => void;
  onZoom: () => void;
  onClose: () => void;
}

interface Row {
  name: string;
  shortName: string;
  category: string;
  /** ns on each rank, and the longest slice there. */
  totals: number[];
  events: (number | null)[];
}

const spread = ({ totals }: Row): number => Math.max(...totals) - Math.min(...totals);

const selectorsOf = (run: string, { worker, span }: Aligned): Selectors => ({ run, worker, span });

export function RanksArea({ run, members, area, time, onEvent, onZoom, onClose }: Props) {
  const [sort, setSort] = useState<Sort | undefined>({ id: 'spread', descending: true });
  const [search, setSearch] = useState<Search>({ text: '', regex: false });
  const answer = useEach<TraceSelection>(
    'trace/selection',
    members.map(member => [
      selectorsOf(run, member),
      { ...range(area.begin - member.shift, area.end - member.shift), tracks: tracksOf(member) },
    ]),
  );
  const selections = answer.payloads;
  const rows = useMemo(() => (selections ? rowsOf(selections, members) : []), [selections, members]);
  const columns = useMemo<Column<Row>[]>(
    () => [
      {
        id: 'name',
        title: 'Name',
        kind: 'text',
        value: row => row.name,
        render: row => (
          <span className="clip" title={row.name}>
            <i className="dot" style={{ background: classColor(row.category) }} /> {row.shortName}
          </span>
        ),
      },
      ...members.map(({ title }, i): Column<Row> => ({
        id: title,
        title,
        kind: 'duration',
        value: row => row.totals[i]!,
      })),
      { id: 'spread', title: 'Most − least', kind: 'duration', value: spread },
    ],
    [members],
  );
  const open = (row: Row | undefined) => {
    const event = row && row.events[row.totals.indexOf(Math.max(...row.totals))];
    if (typeof event === 'number') {
      onEvent(event);
    }
  };
  return (
    <AreaFrame
      length={area.end - area.begin}
      from={time(area.begin)}
      summary={
        answer.error?.message ??
        members.map(({ title }, i) => (
          <span key={title}>
            {title}:{' '}
            {selections?.[i]?.summary.map((text, part) => (
              // oxlint-disable-next-line react/no-array-index-key -- the sentences have no other name
              <Sentence key={part} text={text} />
            ))}
          </span>
        ))
      }
      onZoom={onZoom}
      onClose={onClose}
    >
      <DataTable
        name="selection of ranks"
        rows={rows}
        columns={columns}
        rowKey={row => row.name}
        sort={sort}
        onSort={setSort}
        search={search}
        onSearch={setSearch}
        hotkey={false}
        placeholder={`Filter ${plural(rows.length, 'name')}`}
        onOpen={open}
        onSelect={open}
        noun="name"
        empty="No slices in this selection."
      />
    </AreaFrame>
  );
}

const tracksOf = ({ payload }: Aligned): string =>
  workTracks(payload)
    .filter(track => track.kind === 'thread' || track.kind === 'stream')
    .map(track => track.id)
    .join(',');

function rowsOf(selections: readonly TraceSelection[], members: readonly Aligned[]): Row[] {
  const count = members.length;
  const byName = new Map<string, Row>();
  selections.forEach(({ rows }, index) => {
    for (const { name, short_name, color, total_ns, event } of rows) {
      const row = byName.get(name) ?? {
        name,
        shortName: short_name,
        category: members[index]!.payload.classes[color] ?? 'other',
        totals: members.map(() => 0),
        events: members.map(() => null),
      };
      byName.set(name, row);
      row.totals[index] = total_ns;
      row.events[index] = mergedId(event, index, count);
    }
  });
  return [...byName.values()];
}
