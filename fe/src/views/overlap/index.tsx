// How much communication overlaps with computation: by rank and iteration, recorded and recomputed, and two runs.
import { useMemo } from 'react';
import type { OverlapPayload } from '../../api/types';
import { formatCount, formatDuration, formatNumber, plural } from '../../base/format';
import { useRuns } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Answer } from '../../widgets/Answer';
import { HeatMap } from '../../widgets/charts/HeatMap';
import { Panel } from '../../widgets/Panel';
import { FilesProgress } from '../../widgets/Pending';
import { Sentence, parseLink } from '../../widgets/Sentence';
import { Term } from '../../widgets/Term';
import { Compared } from './Compared';
import { formatMetric } from './format';
import { OverlapRanks } from './OverlapRanks';
import { Steps } from './Steps';
import { preferTraces } from './select';
import css from './index.module.css';

interface Props {
  payload: OverlapPayload;
  run: string;
  span: string;
}

export default function OverlapView({ payload: answer, run, span }: Props) {
  const { selection, select } = useSelection();
  const listed = useRuns().data;
  const runs = useMemo(() => (listed?.runs ?? []).map(each => each.name), [listed]);
  const payload = useMemo(() => preferTraces(answer, runs), [answer, runs]);
  const others = runs.filter(name => name !== run);
  const open = (link: string) => select(parseLink(link));
  return (
    <div className={css.view}>
      <Answer
        crumb={`${run} · span ${span} · ${plural(payload.ranks.length, 'rank')}`}
        why={payload.details.length > 0 && <Sentence text={payload.details} />}
      >
        <Sentence text={payload.headline} />
      </Answer>
      {payload.reading.length > 0 && (
        <FilesProgress
          done={payload.ranks.filter(each => each.state === 'ready' || each.state === 'failed').length}
          total={payload.ranks.length}
        >
          <Sentence text={payload.reading} />
        </FilesProgress>
      )}
      {payload.series.length > 0 && (
        <Panel title="Metrics over the steps" note="means of the ranks; click a step to open the timeline">
          <Steps payload={payload} onOpen={open} />
        </Panel>
      )}
      <Dips dips={payload.dips} />
      <IterationMaps payload={payload} onOpen={open} />
      <OverlapRanks payload={payload} onOpen={open} />
      <RecordedTotals payload={payload} />
      {others.length > 0 && (
        <Compared
          candidate={{ run, span }}
          base={selection.params.with ?? ''}
          runs={others}
          onBase={name => select({ params: name === '' ? {} : { with: name } })}
        />
      )}
    </div>
  );
}

/** Iterations with little overlap, and what rocm-smi read in them and elsewhere. */
function Dips({ dips: { headline, signals } }: { dips: OverlapPayload['dips'] }) {
  return (
    <Panel
      title={
        <>
          Overlap dips <Term id="overlap_dip" />
        </>
      }
    >
      <p>
        <Sentence text={headline} />
      </p>
      {signals.length > 0 && (
        <table className={css.figures} aria-label="Readings in dips and elsewhere">
          <thead>
            <tr>
              <th>Reading</th>
              <th>In dips</th>
              <th>Elsewhere</th>
              <th className={css.words}>Unusual</th>
              <th>Unusual in dips</th>
              <th>Elsewhere</th>
              <th>By chance</th>
              <th className={css.words}>Evidence</th>
            </tr>
          </thead>
          <tbody>
            {signals.map(row => (
              <tr key={row.signal}>
                <td>{row.title}</td>
                <td>{formatMetric(row.dip_value, row.unit)}</td>
                <td>{formatMetric(row.other_value, row.unit)}</td>
                <td className={css.words}>{row.unusual}</td>
                <td>{`${formatCount(row.dips_with)} of ${formatCount(row.dips)}`}</td>
                <td>{`${formatCount(row.others_with)} of ${formatCount(row.others)}`}</td>
                <td>{formatChance(row.chance)}</td>
                <td className={css.words}>{row.strength}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

const formatChance = (chance: number): string =>
  chance < 0.0001 ? 'below 0.01%' : `${formatNumber(100 * chance, 2)}%`;

/** Title and color of each map. */
const MAPS: Record<OverlapPayload['maps'][number]['name'], readonly [string, string]> = {
  exposed: ['Exposed communication', '--c-communication'],
  overlap: ['Overlap', '--c-late'],
  compute: ['Computation', '--c-kernel'],
  total: ['Iteration', '--c-other'],
};

interface IterationMapsProps {
  payload: OverlapPayload;
  /** A cell: the iteration in it with the most exposed communication. */
  onOpen: (link: string) => void;
}

/** Maps of rank and iteration, one for each part of the time. */
function IterationMaps({ payload, onOpen }: IterationMapsProps) {
  return (
    <div className={css.maps} data-part="overlap-maps">
      {payload.maps.map(({ name, values }) => {
        const [title, color] = MAPS[name];
        return (
          <Panel key={name} title={title} note="click a cell to open the timeline">
            <HeatMap
              title={`${title} by rank and iteration`}
              rows={payload.workers}
              columns={payload.steps}
              values={values}
              max={Math.max(...values.flat().map(value => value ?? 0), 1)}
              color={color}
              format={formatDuration}
              onPick={(row, column) => {
                const link = payload.links[row]?.[column];
                if (link) {
                  onOpen(link);
                }
              }}
            />
          </Panel>
        );
      })}
    </div>
  );
}

/** The recorder's totals next to those recomputed from its ranges. */
function RecordedTotals({ payload }: { payload: OverlapPayload }) {
  return (
    <Panel
      title={
        <>
          Recorded and recomputed <Term id="recorded_overlap" />
        </>
      }
    >
      <p>
        <Sentence text={payload.recorded_headline} />
      </p>
      {payload.recorded.length > 0 && (
        <table className={css.figures} aria-label="Recorded and recomputed totals">
          <thead>
            <tr>
              <th>Mean per iteration</th>
              <th>Recorded</th>
              <th>Recomputed</th>
              <th>Iterations that differ</th>
              <th>Largest difference</th>
              <th className={css.words}>Why</th>
            </tr>
          </thead>
          <tbody>
            {payload.recorded.map(row => (
              <tr key={row.name}>
                <td>{row.name}</td>
                <td>{formatDuration(row.recorded_ns)}</td>
                <td>{formatDuration(row.recomputed_ns)}</td>
                <td>{formatCount(row.iterations)}</td>
                <td>{row.iterations > 0 && formatDuration(row.most_ns)}</td>
                <td className={css.words}>{row.iterations > 0 && (row.reason ?? 'unknown')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}
