// Two snapshots of a run by site of allocation: ranks of one job, or dumps before and after.
import { useState } from 'react';
import type { Selectors, SnapshotComparison, WorkerInfo } from '../../../api/types';
import { formatBytes, formatCount, plural } from '../../../base/format';
import { useView, useWorkers } from '../../../state/queries';
import { Panel } from '../../../widgets/Panel';
import { Select } from '../../../widgets/inputs/Select';
import { Sentence } from '../../../widgets/Sentence';
import { Frames } from './Frames';
import pageCss from '../index.module.css';
import liveCss from '../Live.module.css';

interface Props {
  selectors: Selectors;
  device: number;
  /** Path of the snapshot that is shown. */
  path: string;
}

export function SnapshotCompare({ selectors, device, path }: Props) {
  const [chosen, setChosen] = useState('');
  const workers = useWorkers(selectors.run);
  const others = recordings(workers.data?.workers ?? []).filter(each => each.path !== path);
  const base = others.find(each => each.path === chosen);
  const { data, error } = useView<SnapshotComparison>(
    'memory/compare',
    selectors,
    {
      base_run: selectors.run ?? '',
      base_worker: base?.worker ?? '',
      base_span: base?.span ?? '',
      device: String(device),
    },
    base !== undefined,
  );
  if (others.length === 0) {
    return null;
  }
  const found = base && data?.state === 'ready' ? data.payload : undefined;
  const largest = Math.max(...(found?.sites.map(site => Math.abs(site.bytes)) ?? []), 1);
  return (
    <Panel title="Compare" note="by site of allocation, each snapshot at its peak">
      <div className={pageCss.tools}>
        <Select
          label="With"
          value={chosen}
          options={[['', 'none'] as const, ...others.map(each => [each.path, each.label] as const)]}
          onChange={setChosen}
        />
      </div>
      {base && error && <p className="dim">{error.message}</p>}
      {found && (
        <>
          <p>
            <Sentence text={found.headline} />
          </p>
          {found.reasons.sites && (
            <p className="dim">
              <Sentence text={found.reasons.sites} />
            </p>
          )}
          <ol className={liveCss.rows} data-part="compared-sites">
            {found.sites.filter(differs).map((site, i) => (
              // oxlint-disable-next-line react/no-array-index-key -- a fixed list, largest first
              <li key={i}>
                <details>
                  <summary className={liveCss.row}>
                    <span className="clip">{site.frames[0]?.text ?? site.kind}</span>
                    <span className="num dim">{formatCount(site.candidate_blocks)}</span>
                    <span className={liveCss.bar}>
                      <i style={{ width: `${(Math.abs(site.bytes) / largest) * 100}%` }} />
                    </span>
                    <span className="num">{signed(site.bytes)}</span>
                    <span className="num dim">{site.bytes < 0 ? 'less' : site.bytes > 0 ? 'more' : ''}</span>
                  </summary>
                  <p className={`dim ${pageCss.pad}`}>
                    {formatBytes(site.base_bytes)} in {plural(site.base_blocks, 'block')} there,{' '}
                    {formatBytes(site.candidate_bytes)} in {plural(site.candidate_blocks, 'block')} here;{' '}
                    {signed(site.more_bytes)} by their number, {signed(site.larger_bytes)} by their size.
                  </p>
                  <Frames frames={site.frames} />
                </details>
              </li>
            ))}
          </ol>
        </>
      )}
    </Panel>
  );
}

const differs = (site: SnapshotComparison['sites'][number]): boolean => site.bytes !== 0;

const signed = (bytes: number): string => `${bytes < 0 ? '−' : '+'}${formatBytes(Math.abs(bytes))}`;

/** All recordings of a run with what a person calls them. */
const recordings = (workers: readonly WorkerInfo[]) =>
  workers.flatMap(worker =>
    worker.spans.map(span => ({
      worker: worker.name,
      span: span.name,
      path: span.file,
      label: worker.spans.length > 1 ? `${worker.name} · ${span.label || span.name}` : worker.name,
    })),
  );
