import type { DistributedPayload, JobRanks, Selectors } from '../../../api/types';
import { useSelection } from '../../../state/selection';
import { useView } from '../../../state/queries';
import { GroupFamilies } from './GroupFamilies';
import { JobMap } from './JobMap';
import { FoundRank, RankSpreads } from './RankSpreads';
import css from './scale.module.css';

interface Props {
  payload: DistributedPayload;
  selectors: Selectors;
  params: Record<string, string>;
  setParams: (change: Record<string, string>) => void;
  onWorker: (worker: string) => void;
  onLate: (worker: string, step: string) => void;
}

/** A job of more ranks than fit on a page: a map of maxima, percentiles, families of groups, and a search for a rank. */
export function LargeJob({ payload, selectors, params, setParams, onWorker, onLate }: Props) {
  const { select } = useSelection();
  const search = params.rank ?? '';
  // Without a search, show the rank that the headline names.
  const wanted = search || payload.verdict.worker || '';
  const { data } = useView<JobRanks>('distributed/ranks', selectors, { search: wanted, limit: '1' });
  const answer = data?.state === 'ready' && wanted ? data.payload : undefined;
  const found = answer?.rows[0];
  return (
    <>
      <JobMap
        payload={payload}
        selectors={selectors}
        params={params}
        marked={search ? found?.worker : (payload.verdict.worker ?? undefined)}
        setParams={setParams}
        onLate={onLate}
      />
      <div className={css.grid}>
        <RankSpreads spreads={payload.spreads} found={found} onFind={worker => setParams({ rank: worker })} />
        <FoundRank
          search={wanted}
          answer={answer}
          spreads={payload.spreads}
          onWorker={onWorker}
          onTimeline={rank => select({ view: 'trace', worker: rank.worker, params: {} })}
          onAll={() => setParams({ table: 'ranks', q: wanted, sort: '' })}
        />
      </div>
      {payload.group_families.length > 0 && (
        <GroupFamilies
          families={payload.group_families}
          onGroup={group =>
            setParams({ table: 'collectives', group: String(group), sort: '-waiting', collective: '' })
          }
        />
      )}
    </>
  );
}
