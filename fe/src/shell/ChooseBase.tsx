// What to compare with, where nothing says which run is meant.
import { useRuns } from '../state/queries';
import { useSelection } from '../state/selection';
import { Picker } from '../widgets/inputs/Picker';

export function ChooseBase({ run }: { run: string | undefined }) {
  const { selection, select } = useSelection();
  const runs = (useRuns().data?.runs ?? []).filter(each => each.name !== run);
  return (
    <Picker
      name="Run to compare with"
      value={undefined}
      options={runs.map(each => ({ value: each.name, label: each.name }))}
      onPick={base_run => select({ params: { ...selection.params, base_run } })}
    />
  );
}
