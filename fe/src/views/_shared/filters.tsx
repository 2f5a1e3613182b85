// Filters that tables of several views share.
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

/** The step that rows are of, if there are several. */
export function StepFilter({ steps, value = '', onChange }: Props & { steps: readonly string[] }) {
  return (
    steps.length > 1 && <Select label="Step" value={value} options={withAll(steps)} onChange={onChange} />
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
