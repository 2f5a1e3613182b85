// Filters that tables of several views share.
import { useStepWords } from '../../state/steps';
import { Select } from '../../widgets/inputs/Select';

/** Return options for all of these names, and for each of them. */
export const withAll = (names: readonly string[]): (readonly [string, string])[] => [
  ['', 'all'],
  ...names.map(name => [name, name] as const),
];

interface Props {
  value: string | undefined;
  onChange: (value: string) => void;
}

/** The step that rows are of, if there are several; the iteration in the trace of a serving engine. */
export function StepFilter({ steps, value = '', onChange }: Props & { steps: readonly string[] }) {
  const say = useStepWords();
  return (
    steps.length > 1 && (
      <Select label={say('Step')} value={value} options={withAll(steps)} onChange={onChange} />
    )
  );
}

/** The stream that rows are of, if there are several. */
export function StreamFilter({
  streams,
  value = '',
  onChange,
}: Props & { streams: readonly { stream: number | null }[] }) {
  const names = streams.map(({ stream }) => String(stream));
  return (
    names.length > 1 && <Select label="Stream" value={value} options={withAll(names)} onChange={onChange} />
  );
}
