// Rank by step: how late each rank arrives, and how its steps are spent.
import { useMemo } from 'react';
import type { DistributedPayload } from '../../api/types';
import { formatDuration } from '../../base/format';
import { HeatMap } from '../../widgets/charts/HeatMap';
import { Panel } from '../../widgets/Panel';
import { Term } from '../../widgets/Term';
import { useStepWords } from '../../state/steps';
import { maxValue, grid, rankName, rankNoun } from './select';
import css from './index.module.css';

/** Lateness below this share of the longest part of a step is noise and is drawn pale. */
const MIN_LATENESS_SHARE = 0.05;

const PARTS = [
  ['computation', 'Computation', '--c-kernel', 'computation'],
  ['exposed', 'Exposed communication', '--c-communication', 'exposed'],
  ['other', 'Neither', '--c-other', 'neither'],
] as const;

interface Props {
  payload: DistributedPayload;
  /** A click on a cell of the lateness map: a rank in a step. */
  onLate: (worker: string, step: string) => void;
  /** A click on a cell of another map. */
  onStep: (worker: string, step: string) => void;
}

export function StepMaps({ payload, onLate, onStep }: Props) {
  const maps = useMemo(() => {
    const computation = grid(payload, row => row.computation_ns + row.overlap_ns);
    const exposed = grid(payload, row => row.exposed_ns);
    const other = grid(payload, row => row.other_ns);
    return { computation, exposed, other, most: maxValue(computation, exposed, other) };
  }, [payload]);
  const say = useStepWords();
  const noun = rankNoun(payload);
  const late = payload.heat_map;
  const ranks = useMemo(() => new Map(payload.ranks.map(row => [row.worker, row.rank])), [payload]);
  const rowsOfVerdict = (workers: readonly string[]) =>
    new Set(workers.flatMap((worker, i) => (worker === payload.verdict.worker ? [i] : [])));
  const marked = rowsOfVerdict(payload.averages.map(row => row.worker));
  return (
    <div className={css.maps}>
      {late && (
        <Panel
          title={
            <>
              Lateness <Term id="late" />
            </>
          }
          note={`after the median ${noun}`}
        >
          <HeatMap
            title={say(`How late each ${noun} arrives, per step`)}
            rows={late.workers.map(worker => rankName(ranks.get(worker) ?? null, worker))}
            columns={late.steps}
            values={late.lateness_ns}
            max={Math.max(
              maxValue({ rows: [], steps: [], values: late.lateness_ns }),
              MIN_LATENESS_SHARE * maps.most,
            )}
            color="--c-late"
            format={formatDuration}
            describe={value => `${formatDuration(value)} after the median ${noun}`}
            highlightedRows={rowsOfVerdict(late.workers)}
            onPick={(row, column) => onLate(late.workers[row]!, late.steps[column]!)}
          />
        </Panel>
      )}
      {PARTS.map(([name, title, color, term]) => (
        <Panel
          key={name}
          title={
            <>
              {title} <Term id={term} />
            </>
          }
        >
          <HeatMap
            title={say(`${title} by ${noun} and step`)}
            rows={maps[name].rows}
            columns={maps[name].steps}
            values={maps[name].values}
            max={maps.most}
            color={color}
            format={formatDuration}
            highlightedRows={marked}
            onPick={(row, column) => onStep(maps[name].workers[row]!, maps[name].steps[column]!)}
          />
        </Panel>
      ))}
    </div>
  );
}
