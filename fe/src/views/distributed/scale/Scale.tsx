// A job of more ranks than fit on a page: a map of maxima, percentiles, families of groups, and a search for a rank.
import type { DistributedPayload, JobRanks, Selectors } from '../../../api/types';
import { useSelection } from '../../../state/selection';
import { useView } from '../../../state/queries';
import { Found } from './Found';
import { GroupFamilies } from './GroupFamilies';
import { JobMap } from './JobMap';
import { Spreads } from './Spreads';
import css from './scale.module.css';

interface Props {
  payload: DistributedPayload;
  selectors: Selectors;
  params: Record<string, string>;
  put: (change: Record<string, string>) => void;
  onWorker: (worker: string) => void;
  onLate: (worker: string, step: string) => void;
}

export function Scale({ payload, selectors, params, put, onWorker, onLate }: Props) {
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
        put={put}
        onLate={onLate}
      />
      <div className={css.grid}>
        <Spreads spreads={payload.spreads} found={found} onFind={worker => put({ rank: worker })} />
        {wanted && (
          <Found
            search={wanted}
            answer={answer}
            spreads={payload.spreads}
            onWorker={onWorker}
            onTimeline={rank => select({ view: 'trace', worker: rank.worker, params: {} })}
            onAll={() => put({ table: 'ranks', q: wanted, sort: '' })}
          />
        )}
      </div>
      {payload.group_families.length > 0 && (
        <GroupFamilies
          families={payload.group_families}
          onGroup={group =>
            put({ table: 'collectives', group: String(group), sort: '-waiting', collective: '' })
          }
        />
      )}
    </>
  );
}
