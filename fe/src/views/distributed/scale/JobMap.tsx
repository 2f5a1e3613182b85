// A large job as one map: ranks from left to right, steps from top to bottom; a cell is the worst of its ranks and steps.
import type { DistributedPayload, RankMap, Selectors } from '../../../api/types';
import { formatCount, formatDuration, plural } from '../../../base/format';
import { useView } from '../../../state/queries';
import { denseHeight, RULERS_HEIGHT } from '../../../widgets/charts/heat';
import { HeatMap } from '../../../widgets/charts/HeatMap';
import { Button } from '../../../widgets/inputs/Button';
import { Choice } from '../../../widgets/inputs/Choice';
import { Panel } from '../../../widgets/Panel';
import { Sentence } from '../../../widgets/Sentence';
import { SearchBox } from '../../../widgets/table/SearchBox';
import { maxValue } from '../select';
import { useStepWords } from '../../../state/steps';
import css from './scale.module.css';

const SHOWN = [
  ['late', 'Lateness'],
  ['computation', 'Computation'],
  ['exposed', 'Exposed'],
  ['other', 'Neither'],
] as const;

const SCALES = [
  ['linear', 'Linear'],
  ['log', 'Log'],
] as const;

/** Most rows of the map; there is one per step, or per few of them. */
const MAX_ROWS = 64;

type Show = (typeof SHOWN)[number][0];

const COLORS: Record<Show, string> = {
  late: '--c-late',
  computation: '--c-kernel',
  exposed: '--c-communication',
  other: '--c-other',
};

interface Props {
  payload: DistributedPayload;
  selectors: Selectors;
  /** The worker to mark: the search result, or the straggler. */
  marked: string | undefined;
  /** Change parameters of the page; an empty value removes one. */
  setParams: (change: Record<string, string>) => void;
  params: Record<string, string>;
  onLate: (worker: string, step: string) => void;
}

export function JobMap({ payload, selectors, params, marked, setParams, onLate }: Props) {
  const show = SHOWN.find(([name]) => name === params.show)?.[0] ?? 'late';
  const by = params.by ?? 'rank';
  const say = useStepWords();
  const log = params.scale === 'log';
  const { data, error } = useView<RankMap>('distributed/map', selectors, {
    show,
    by,
    ...(params.begin && { begin: params.begin }),
    ...(params.end && { end: params.end }),
    ...(marked && { mark: marked }),
  });
  const map = data?.state === 'ready' ? data.payload : undefined;
  const widest = Math.max(...(map?.columns.map(column => column.ranks) ?? []), 1);
  const onPick = (row: number, at: number) => {
    const column = map!.columns[at]!;
    if (column.last > column.first) {
      setParams({ begin: String(column.first), end: String(column.last + 1) });
    } else if (column.worst_worker !== null) {
      const step = map!.rows[row]!;
      onLate(column.worst_worker, payload.steps.includes(step) ? step : '');
    }
  };
  const noun = by === 'rank' ? 'rank ' : by === 'host' ? '' : `${by} `;
  return (
    <Panel
      title="Map of the ranks"
      note={
        widest > 1
          ? `a cell shows the worst of up to ${plural(widest, 'rank')}${by === 'rank' ? '; click to open them' : ''}`
          : undefined
      }
      actions={
        (params.begin || params.end) && (
          <Button look="quiet" onClick={() => setParams({ begin: '', end: '' })}>
            Show all {formatCount(map?.count ?? 0)}
          </Button>
        )
      }
    >
      <div className={css.tools} data-part="map-tools">
        <Choice
          name="Show"
          value={show}
          options={SHOWN}
          onPick={next => setParams({ show: next === 'late' ? '' : next })}
        />
        <Choice
          name="Scale"
          value={log ? 'log' : 'linear'}
          options={SCALES}
          onPick={next => setParams({ scale: next === 'linear' ? '' : next })}
        />
        <SearchBox
          search={{ text: params.rank ?? '', regex: false }}
          onSearch={next => setParams({ rank: next.text })}
          placeholder="Find a rank, worker, or host"
          hotkey={false}
          plain
        />
        {map && map.choices.length > 1 && (
          <Choice
            name="Columns"
            value={by}
            options={map.choices.map(each => [each, each[0]!.toUpperCase() + each.slice(1)] as const)}
            onPick={next => setParams({ by: next === 'rank' ? '' : next, begin: '', end: '' })}
          />
        )}
      </div>
      {error && <p className="status error">{error.message}</p>}
      <div style={{ minHeight: RULERS_HEIGHT + denseHeight(Math.min(payload.steps.length, MAX_ROWS)) }}>
        {map &&
          (map.rows.length > 0 ? (
            <HeatMap
              title={say(`${SHOWN.find(([name]) => name === show)![1]} by ${by} and step`)}
              rows={map.rows}
              columns={map.columns.map(column => column.label)}
              values={map.cells_ns}
              max={maxValue({ rows: [], steps: [], values: map.cells_ns })}
              color={COLORS[show]}
              format={formatDuration}
              nouns={{ row: say('step '), column: noun, columns: noun }}
              highlightedColumn={map.marked ?? undefined}
              onPick={onPick}
              onBrush={(first, last) =>
                setParams({
                  begin: String(map.columns[first]!.first),
                  end: String(map.columns[last]!.last + 1),
                })
              }
              log={log}
              rulers
            />
          ) : (
            <p className="dim">
              <Sentence text={map.reasons.late_worker ?? map.reasons.transfer_ns ?? []} />
            </p>
          ))}
      </div>
    </Panel>
  );
}
