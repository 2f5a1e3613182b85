// Further recordings of a side: their scatter among themselves is what a difference is weighed against.
import type { Selectors } from '../../api/types';
import { useRuns, useWorkers } from '../../state/queries';
import { Button } from '../../widgets/inputs/Button';
import { Icon } from '../../widgets/Icon';
import { Picker } from '../../widgets/inputs/Picker';

/** A recording as the parameters `also` and `base_also` list it: run, worker, span. */
type Recording = [string, string | null, string | null];

interface Props {
  side: 'candidate' | 'base';
  first: Required<Selectors>;
  /** The parameter, '' for none. */
  further: string;
  onFurther: (further: string) => void;
}

const nameOf = ([run, worker, span]: Recording) =>
  [run, worker, span && `span ${span}`].filter(Boolean).join(' · ');

/** What is listed; a parameter that somebody wrote by hand may be anything. */
function parse(further: string): Recording[] {
  try {
    const listed: unknown = JSON.parse(further);
    return Array.isArray(listed) ? (listed as Recording[]) : [];
  } catch {
    return [];
  }
}

export function Recordings({ side, first, further, onFurther }: Props) {
  const runs = useRuns().data?.runs ?? [];
  const workers = useWorkers(first.run).data?.workers ?? [];
  const chosen = parse(further);
  const spans = workers.find(worker => worker.name === first.worker)?.spans ?? [];
  const others: Recording[] = [
    ...spans.map(span => [first.run, first.worker, span.name] as Recording),
    ...runs.filter(run => run.name !== first.run).map(run => [run.name, null, null] as Recording),
  ];
  const taken = new Set([nameOf([first.run, first.worker, first.span]), ...chosen.map(nameOf)]);
  const options = others
    .filter(each => !taken.has(nameOf(each)))
    .map(each => ({ value: JSON.stringify(each), label: nameOf(each) }));
  const put = (next: Recording[]) => onFurther(next.length > 0 ? JSON.stringify(next) : '');
  return (
    <>
      {chosen.map(each => (
        <Button
          key={nameOf(each)}
          title={`Leave this recording of the ${side} out`}
          onClick={() => put(chosen.filter(other => other !== each))}
        >
          {nameOf(each)} <Icon name="close" size={14} />
        </Button>
      ))}
      {options.length > 0 && (
        <Picker
          name="Recording"
          value={`add to ${side}`}
          options={options}
          onPick={picked => put([...chosen, JSON.parse(picked) as Recording])}
        />
      )}
    </>
  );
}
