// The selected window of several ranks: totals by name and rank, largest difference first.
import { type ReactNode, useMemo } from 'react';
import type { Selectors, TraceSelection } from '../../../api/types';
import { useViewOfEach } from '../../../state/queries';
import { mergedId } from '../../../timeline/tiles/merge';
import type { Span } from '../../../timeline/tiles/store';
import { Sentence } from '../../../widgets/Sentence';
import type { Column } from '../../../widgets/table/columns';
import { rangeParams } from '../answers';
import { AreaFrame, nameColumn } from '../panels/AreaFrame';
import { summedTracks } from '../trackSets';
import type { AlignedRank } from '../source';
import type { SummedKind } from '../state';

interface Props {
  run: string;
  members: readonly AlignedRank[];
  area: Span;
  sums: SummedKind;
  choice: ReactNode;
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

const selectorsOf = (run: string, { worker, span }: AlignedRank): Selectors => ({ run, worker, span });

export function RanksArea({ run, members, area, sums, choice, time, ...ways }: Props) {
  const answer = useViewOfEach<TraceSelection>(
    'trace/selection',
    members.map(member => [
      selectorsOf(run, member),
      {
        ...rangeParams(area.begin - member.shift, area.end - member.shift),
        tracks: summedTracks(member.payload, sums),
        ...(member.payload.python ? { python: 'true' } : {}),
      },
    ]),
  );
  const selections = answer.payloads;
  const rows = useMemo(() => (selections ? rowsOf(selections, members) : []), [selections, members]);
  const columns = useMemo<Column<Row>[]>(
    () => [
      nameColumn(row => ({ short: row.shortName, category: row.category })),
      ...members.map(({ title }, i): Column<Row> => ({
        id: title,
        title,
        kind: 'duration',
        value: row => row.totals[i]!,
      })),
      { id: 'spread', title: 'Max − min', kind: 'duration', value: spread },
    ],
    [members],
  );
  return (
    <AreaFrame
      name="selection of ranks"
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
      choice={choice}
      rows={rows}
      columns={columns}
      first="spread"
      names={rows.length}
      eventOf={row => row.events[row.totals.indexOf(Math.max(...row.totals))] ?? null}
      {...ways}
    />
  );
}

function rowsOf(selections: readonly TraceSelection[], members: readonly AlignedRank[]): Row[] {
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
