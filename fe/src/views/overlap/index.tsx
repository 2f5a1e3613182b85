// How much communication overlaps with computation: by rank and iteration, recorded and recomputed, and two runs.
import { useMemo } from 'react';
import type { OverlapPayload } from '../../api/types';
import { plural } from '../../base/format';
import { useRuns } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Answer } from '../../widgets/Answer';
import { Panel } from '../../widgets/Panel';
import { FilesProgress } from '../../widgets/Pending';
import { Sentence, parseLink } from '../../widgets/Sentence';
import { Term } from '../../widgets/Term';
import { Compared } from './Compared';
import { Dips } from './Dips';
import { IterationMaps } from './IterationMaps';
import { OverlapRanks } from './OverlapRanks';
import { Recorded } from './Recorded';
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
      <Panel
        title={
          <>
            Overlap dips <Term id="overlap_dip" />
          </>
        }
      >
        <Dips payload={payload} />
      </Panel>
      <IterationMaps payload={payload} onOpen={open} />
      <OverlapRanks payload={payload} onOpen={open} />
      <Panel
        title={
          <>
            Recorded and recomputed <Term id="recorded_overlap" />
          </>
        }
      >
        <Recorded payload={payload} />
      </Panel>
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
