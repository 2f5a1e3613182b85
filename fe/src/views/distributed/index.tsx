import { useCallback, useMemo, useState } from 'react';
import type { DistributedPayload } from '../../api/types';
import { plural } from '../../base/format';
import { writeRanks } from '../../state/ranks';
import { useSelection } from '../../state/selection';
import { Answer } from '../../widgets/Answer';
import { Sentence } from '../../widgets/Sentence';
import { Averages } from './Averages';
import { StepMaps } from './StepMaps';
import { Problems } from './Problems';
import { LargeJob } from './scale/LargeJob';
import { backends, isLarge } from './select';
import { Stragglers } from './Stragglers';
import { JobTables } from './tables/JobTables';
import css from './index.module.css';

/** The table of collectives that late ranks lead to. */
const LATE_TABLE = { table: 'collectives', sort: '-skew' };

interface Props {
  payload: DistributedPayload;
  run: string;
}

export default function DistributedView(props: Props) {
  return <Job key={props.run} {...props} />;
}

function Job({ payload, run }: Props) {
  const { selection, select } = useSelection();
  const { params, span } = selection;
  const selectors = useMemo(() => ({ run: selection.run, span }), [selection.run, span]);
  const setParams = useCallback(
    (change: Record<string, string>) =>
      select({
        params: Object.fromEntries(
          Object.entries({ ...params, ...change }).filter(([, value]) => value !== ''),
        ),
      }),
    [params, select],
  );
  const onWorker = useCallback((worker: string) => select({ view: 'overview', worker }), [select]);
  const onStep = (worker: string, step: string) => select({ view: 'overview', worker, params: { step } });
  const onName = (worker: string, find: string, frames: boolean) =>
    select({ view: 'trace', worker, params: { find, ...(frames && { python: 'true' }) } });
  const onLate = (late: string, step = '') => setParams({ ...LATE_TABLE, late, step, collective: '' });
  const onMerged = (workers: string[], more: Record<string, string> = {}) =>
    select({ view: 'trace', params: { ...more, ranks: writeRanks(workers) } });
  const crumb = [run, plural(payload.rank_count, 'worker'), backends(payload)].filter(Boolean).join(' · ');
  // The space of a job that is being read is kept when all of it has been read, so that nothing jumps.
  const loading = payload.problems.some(problem => problem.kind === 'loading');
  const [wasLoading] = useState(loading);
  return (
    <div className={css.view}>
      <Answer
        crumb={crumb}
        reserved={wasLoading}
        why={payload.explanation.length > 0 && <Sentence text={payload.explanation} />}
      >
        <Sentence text={payload.headline} />
      </Answer>
      <Problems payload={payload} wasLoading={wasLoading} />
      {isLarge(payload) ? (
        <LargeJob
          payload={payload}
          selectors={selectors}
          params={params}
          setParams={setParams}
          onWorker={onWorker}
          onLate={onLate}
        />
      ) : (
        <>
          <StepMaps payload={payload} onLate={onLate} onStep={onStep} />
          <Averages payload={payload} onWorker={onWorker} onMerged={onMerged} />
        </>
      )}
      <Stragglers payload={payload} onWorker={onWorker} onLate={onLate} onName={onName} />
      <JobTables
        payload={payload}
        selectors={selectors}
        setParams={setParams}
        onWorker={onWorker}
        onMerged={onMerged}
      />
    </div>
  );
}
