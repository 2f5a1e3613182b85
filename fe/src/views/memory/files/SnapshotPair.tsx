// A snapshot beside another one of any run: what differs, and what follows for other batch sizes.
import { memo, useState } from 'react';
import type { Selectors, Workers } from '../../../api/types';
import { useRuns, useWorkers } from '../../../state/queries';
import { Panel } from '../../../widgets/Panel';
import { Select } from '../../../widgets/inputs/Select';
import { SnapshotCompare } from './SnapshotCompare';
import { SnapshotFit } from './SnapshotFit';
import pageCss from '../index.module.css';

interface Props {
  selectors: Selectors;
  device: number;
  /** Path of the snapshot that is shown. */
  path: string;
}

export const SnapshotPair = memo(function SnapshotPair({ selectors, device, path }: Props) {
  const [run, setRun] = useState(selectors.run ?? '');
  const [chosen, setChosen] = useState('');
  const runs = useRuns();
  const workers = useWorkers(run || undefined);
  const names = runs.data?.runs.map(each => each.name) ?? [];
  const others = recordings(workers.data).filter(each => each.path !== path);
  const other = others.find(each => each.path === chosen);
  const base: Record<string, string> | null = other
    ? { base_run: run, base_worker: other.worker, base_span: other.span, device: String(device) }
    : null;
  return (
    <>
      <Panel title="Compare" note="by allocation site, each snapshot at its peak">
        <div className={pageCss.tools}>
          {names.length > 1 && (
            <Select
              label="Run"
              value={run}
              options={names.map(name => [name, name] as const)}
              onChange={name => {
                setRun(name);
                setChosen('');
              }}
            />
          )}
          {others.length > 0 ? (
            <Select
              label="With"
              value={chosen}
              options={[['', 'none'] as const, ...others.map(each => [each.path, each.label] as const)]}
              onChange={setChosen}
            />
          ) : (
            workers.data && (
              <span className="dim">
                {run === selectors.run
                  ? 'This run has no other snapshot. Record a second one to see what changed.'
                  : 'That run has no snapshot.'}
              </span>
            )
          )}
        </div>
        {base && <SnapshotCompare selectors={selectors} base={base} />}
      </Panel>
      <SnapshotFit selectors={selectors} base={base} hasOthers={others.length > 0} />
    </>
  );
});

/** The snapshots of a run that are recordings of their own, with what a person calls them. */
const recordings = (body: Workers | undefined) => {
  const snapshots = new Set(
    body?.memory_files.filter(file => file.kind === 'snapshot').map(file => file.path),
  );
  return (body?.workers ?? []).flatMap(worker =>
    worker.spans
      .filter(span => snapshots.has(span.file))
      .map(span => ({
        worker: worker.name,
        span: span.name,
        path: span.file,
        label: worker.spans.length > 1 ? `${worker.name} · ${span.label || span.name}` : worker.name,
      })),
  );
};
