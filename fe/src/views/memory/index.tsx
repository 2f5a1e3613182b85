import { useMemo } from 'react';
import type { MemoryPayload } from '../../api/types';
import { useWorkers } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Answer } from '../../widgets/Answer';
import { Select } from '../../widgets/inputs/Select';
import { Sentence } from '../../widgets/Sentence';
import { Snapshot } from './files/Snapshot';
import { ExportedTimeline } from './files/ExportedTimeline';
import { TraceMemory } from './TraceMemory';

interface Props {
  payload: MemoryPayload;
  crumb: string;
  run: string;
  /** Worker and span shown, even if the address names none. */
  worker: string;
  span: string;
}

/** The trace's memory, or one of the memory files that lie beside it. */
export default function MemoryView({ payload, crumb, run, ...shown }: Props) {
  const { selection, select } = useSelection();
  const { params, worker, span } = selection;
  const workers = useWorkers(run);
  const selectors = useMemo(() => ({ run, worker, span }), [run, worker, span]);
  const files = workers.data?.memory_files ?? [];
  const traced = payload.devices.length > 0;
  const path = workers.data?.workers
    .find(each => each.name === shown.worker)
    ?.spans.find(each => each.name === shown.span)?.file;
  const own = files.find(each => each.path === path) ?? files[0];
  const requested = params.file ?? (traced ? '' : String(own?.file ?? ''));
  const file = files.find(each => String(each.file) === requested);
  const options = [
    ...(traced ? [['', 'the trace'] as const] : []),
    ...files.map(each => [String(each.file), each.name] as const),
  ];
  const choice = files.length > 0 && (
    <Select
      label="Memory of"
      value={file ? requested : ''}
      options={options}
      onChange={next => select({ params: next === '' ? {} : { file: next } })}
    />
  );
  if (file) {
    const Shown = file.kind === 'snapshot' ? Snapshot : ExportedTimeline;
    return <Shown key={file.file} selectors={selectors} file={file} crumb={crumb} files={choice} />;
  }
  return traced ? (
    <TraceMemory payload={payload} crumb={crumb} files={choice} />
  ) : (
    <Answer crumb={crumb}>
      <Sentence text={payload.headline} />
    </Answer>
  );
}
