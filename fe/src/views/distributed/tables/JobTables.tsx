import { useCallback } from 'react';
import type { DistributedPayload, Selectors } from '../../../api/types';
import { useSelection } from '../../../state/selection';
import { useStepWords } from '../../../state/steps';
import { Button } from '../../../widgets/inputs/Button';
import { Icon } from '../../../widgets/Icon';
import { Choice } from '../../../widgets/inputs/Choice';
import { Select } from '../../../widgets/inputs/Select';
import { InstanceDetail } from '../Instance';
import { isLarge, rankName, rankNoun } from '../select';
import { GroupCollectives, RankCollectives } from './Collectives';
import { Families } from './Families';
import { Instances } from './Instances';
import { RankTable } from './RankTable';
import css from '../index.module.css';
import splitCss from '../../../widgets/table/Split.module.css';

const tables = (noun: 'rank' | 'worker') =>
  [
    ['worker', `By ${noun}`],
    ['group', 'By process group'],
    ['collectives', 'All collectives'],
    ['families', 'Kernel families'],
    ['ranks', noun === 'rank' ? 'Ranks and clocks' : 'Workers and clocks'],
  ] as const;

const FILTERS = ['group', 'step', 'late', 'mismatched'];

interface Props {
  payload: DistributedPayload;
  selectors: Selectors;
  /** Change parameters of the page; an empty value removes one. */
  setParams: (change: Record<string, string>) => void;
  onWorker: (worker: string) => void;
  onMerged: (workers: string[], params: Record<string, string>) => void;
}

/** One of five tables; next to the collectives, the selected one. */
export function JobTables({ payload, selectors, setParams, onWorker, onMerged }: Props) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const options = tables(rankNoun(payload));
  const table = options.find(([name]) => name === params.table)?.[0] ?? 'worker';
  const picked =
    table === 'collectives' && /^\d+$/.test(params.collective ?? '') ? Number(params.collective) : null;
  const filter = Object.fromEntries(FILTERS.filter(name => params[name]).map(name => [name, params[name]!]));
  const onPick = useCallback((id: number) => setParams({ collective: String(id) }), [setParams]);
  const before = (
    <>
      <Choice
        name="Table"
        value={table}
        options={options}
        onPick={next =>
          setParams({
            ...Object.fromEntries(FILTERS.map(name => [name, ''])),
            table: next === 'worker' ? '' : next,
            sort: '',
            q: '',
            collective: '',
          })
        }
      />
      {table === 'collectives' && <Filters payload={payload} params={params} setParams={setParams} />}
    </>
  );
  const shared = { payload, selectors, before };
  return (
    <div
      className={`${splitCss.split} ${css.tables} ${picked === null ? '' : `${splitCss.withDetail} ${css.withDetail}`}`}
      data-part="job-tables"
    >
      {table === 'worker' && <RankCollectives {...shared} />}
      {table === 'group' && <GroupCollectives {...shared} />}
      {table === 'families' && <Families {...shared} />}
      {table === 'ranks' && <RankTable {...shared} onWorker={onWorker} />}
      {table === 'collectives' && (
        <Instances
          {...shared}
          sort={params.sort ?? 'start'}
          search={params.q ?? ''}
          filter={filter}
          onSort={sort => setParams({ sort })}
          onSearch={q => setParams({ q })}
          onPick={onPick}
        />
      )}
      {picked !== null && (
        <InstanceDetail
          key={picked}
          selectors={selectors}
          id={picked}
          onClose={() => setParams({ collective: '' })}
          onMerged={onMerged}
          onEvent={(worker, span, event) =>
            select({ view: 'trace', worker, span, params: { event: String(event) } })
          }
        />
      )}
    </div>
  );
}

type FiltersProps = Pick<Props, 'payload' | 'setParams'> & { params: Record<string, string> };

/** Which collectives the table shows. */
function Filters({ payload, params, setParams }: FiltersProps) {
  const say = useStepWords();
  const late = payload.ranks.find(row => row.worker === params.late);
  return (
    <>
      {payload.groups.length > 1 && (
        <Select
          label="Group"
          value={params.group ?? ''}
          options={[['', 'all'], ...payload.groups.map(group => [String(group.id), group.label] as const)]}
          onChange={group => setParams({ group })}
        />
      )}
      <Select
        label={say('Step')}
        value={params.step ?? ''}
        options={[['', 'all'], ...payload.steps.map(step => [step, step] as const)]}
        onChange={step => setParams({ step })}
      />
      {isLarge(payload) && params.group && (
        <Chip onClear={() => setParams({ group: '' })}>group {params.group}</Chip>
      )}
      {params.late && (
        <Chip onClear={() => setParams({ late: '' })}>
          arrived last: {rankName(late?.rank ?? null, params.late)}
        </Chip>
      )}
      {params.mismatched && <Chip onClear={() => setParams({ mismatched: '' })}>mismatched</Chip>}
    </>
  );
}

function Chip({ children, onClear }: { children: React.ReactNode; onClear: () => void }) {
  return (
    <Button look="chip" data-part="chip" title="Show all" onClick={onClear}>
      {children} <Icon name="close" size={12} />
    </Button>
  );
}
