// Which two traces are compared.
import type { Selectors } from '../../api/types';
import { formatBytes, formatRatio, plural } from '../../base/format';
import { useRuns, useWorkers } from '../../state/queries';
import { Button } from '../../widgets/inputs/Button';
import { Icon } from '../../widgets/Icon';
import { Picker } from '../../widgets/inputs/Picker';
import { Select } from '../../widgets/inputs/Select';
import { Recordings } from './Recordings';
import css from './Sides.module.css';

interface Props {
  base: Required<Selectors>;
  candidate: Required<Selectors>;
  /** Further recordings of each side, as the parameters of these names list them. */
  further: { base_also: string; also: string };
  onFurther: (further: { base_also?: string; also?: string }) => void;
  onBase: (base: Selectors) => void;
  onSwap: () => void;
  least: string;
  onLeast: (share: string) => void;
}

/** The least change that matters, as a share. */
const LEAST = ['0.005', '0.01', '0.02', '0.05', '0.1'];

/** The base, and what else each side is made of; the first of the candidate is what the bar above chooses. */
export function Sides({ base, candidate, further, onFurther, onBase, onSwap, least, onLeast }: Props) {
  const runs = useRuns().data?.runs ?? [];
  const workers = useWorkers(base.run).data?.workers ?? [];
  const spans = workers.find(worker => worker.name === base.worker)?.spans ?? [];
  return (
    <div className={css.sides} data-part="diff-sides">
      <span className="dim">Base</span>
      <Picker
        name="Run"
        value={base.run}
        options={runs.map(run => ({
          value: run.name,
          label: run.name,
          detail: `${plural(run.workers, 'worker')} · ${formatBytes(run.bytes)}`,
        }))}
        onPick={run => onBase({ run })}
      />
      {workers.length > 1 && (
        <Picker
          name="Worker"
          value={base.worker}
          options={workers.map(worker => ({ value: worker.name, label: worker.name }))}
          onPick={worker => onBase({ run: base.run, worker })}
        />
      )}
      {spans.length > 1 && (
        <Select
          label="Span"
          value={base.span}
          options={spans.map(span => [span.name, span.name] as const)}
          onChange={span => onBase({ ...base, span })}
        />
      )}
      <Recordings
        side="base"
        first={base}
        further={further.base_also}
        onFurther={base_also => onFurther({ base_also })}
      />
      <span className="dim">Candidate</span>
      <Recordings
        side="candidate"
        first={candidate}
        further={further.also}
        onFurther={also => onFurther({ also })}
      />
      <Select
        label="Least change that matters"
        value={least}
        options={[...new Set([...LEAST, least])].map(share => [share, formatRatio(Number(share))] as const)}
        onChange={onLeast}
      />
      <Button title="Compare the other way round" onClick={onSwap}>
        <Icon name="swap" size={14} /> Switch sides
      </Button>
    </div>
  );
}
