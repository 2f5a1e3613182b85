// Which recordings are compared: the base, and further recordings of either side.
import type { Selectors } from '../../api/types';
import { formatBytes, formatRatio, plural } from '../../base/format';
import { useRuns, useWorkers } from '../../state/queries';
import { Button } from '../../widgets/inputs/Button';
import { Icon } from '../../widgets/Icon';
import { Picker } from '../../widgets/inputs/Picker';
import { Select } from '../../widgets/inputs/Select';
import css from './Sides.module.css';

interface Props {
  base: Required<Selectors>;
  candidate: Required<Selectors>;
  /** Further recordings of each side, as in the parameters of these names. */
  further: { base_also: string; also: string };
  onFurther: (further: { base_also?: string; also?: string }) => void;
  onBase: (base: Selectors) => void;
  onSwap: () => void;
  minEffect: string;
  onMinEffect: (share: string) => void;
}

/** Choices for the smallest change that matters, as shares. */
const MIN_EFFECTS = ['0.005', '0.01', '0.02', '0.05', '0.1'];

/** Pickers for the base and further recordings; the bar above selects the first recording of the candidate. */
export function Sides({
  base,
  candidate,
  further,
  onFurther,
  onBase,
  onSwap,
  minEffect,
  onMinEffect,
}: Props) {
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
      <FurtherRecordings
        side="base"
        first={base}
        further={further.base_also}
        onFurther={base_also => onFurther({ base_also })}
      />
      <span className="dim">Candidate</span>
      <FurtherRecordings
        side="candidate"
        first={candidate}
        further={further.also}
        onFurther={also => onFurther({ also })}
      />
      <Select
        label="Smallest change that matters"
        value={minEffect}
        options={[...new Set([...MIN_EFFECTS, minEffect])].map(
          share => [share, formatRatio(Number(share))] as const,
        )}
        onChange={onMinEffect}
      />
      <Button title="Swap base and candidate" onClick={onSwap}>
        <Icon name="swap" size={14} /> Swap sides
      </Button>
    </div>
  );
}

/** A recording as the parameters `also` and `base_also` list it: run, worker, span. */
type Recording = [string, string | null, string | null];

interface FurtherProps {
  side: 'candidate' | 'base';
  first: Required<Selectors>;
  /** The parameter, '' for none. */
  further: string;
  onFurther: (further: string) => void;
}

/** Further recordings of a side: run-to-run noise between them is what a difference is compared with. */
function FurtherRecordings({ side, first, further, onFurther }: FurtherProps) {
  const runs = useRuns().data?.runs ?? [];
  const workers = useWorkers(first.run).data?.workers ?? [];
  const selected = parseRecordings(further);
  const spans = workers.find(worker => worker.name === first.worker)?.spans ?? [];
  const others: Recording[] = [
    ...spans.map(span => [first.run, first.worker, span.name] as Recording),
    ...runs.filter(run => run.name !== first.run).map(run => [run.name, null, null] as Recording),
  ];
  const chosen = new Set([
    recordingName([first.run, first.worker, first.span]),
    ...selected.map(recordingName),
  ]);
  const options = others
    .filter(recording => !chosen.has(recordingName(recording)))
    .map(recording => ({ value: JSON.stringify(recording), label: recordingName(recording) }));
  const update = (next: Recording[]) => onFurther(next.length > 0 ? JSON.stringify(next) : '');
  return (
    <>
      {selected.map(recording => (
        <Button
          key={recordingName(recording)}
          title={`Remove this recording from the ${side}`}
          onClick={() => update(selected.filter(other => other !== recording))}
        >
          {recordingName(recording)} <Icon name="close" size={14} />
        </Button>
      ))}
      {options.length > 0 && (
        <Picker
          name="Recording"
          value={`add to ${side}`}
          options={options}
          onPick={picked => update([...selected, JSON.parse(picked) as Recording])}
        />
      )}
    </>
  );
}

const recordingName = ([run, worker, span]: Recording) =>
  [run, worker, span && `span ${span}`].filter(Boolean).join(' · ');

/** Return the recordings in the parameter, which may hold anything if it was typed by hand. */
function parseRecordings(further: string): Recording[] {
  try {
    const listed: unknown = JSON.parse(further);
    return Array.isArray(listed) ? (listed as Recording[]) : [];
  } catch {
    return [];
  }
}
