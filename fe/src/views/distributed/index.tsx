import { useCallback, useMemo } from 'react';
import type { Distributed } from '../../api/types';
import { formatCount, plural } from '../../base/format';
import { writeRanks } from '../../state/ranks';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Answer } from '../../widgets/Answer';
import { Panel } from '../../widgets/Panel';
import { Sentence } from '../../widgets/Sentence';
import { Maps } from './Maps';
import { Problems } from './Problems';
import { PARTS, RankBars } from './RankBars';
import { backends, someRanks } from './select';
import { Stragglers } from './Stragglers';
import { JobTables } from './tables/JobTables';
import css from './index.module.css';
import rankBarsCss from './RankBars.module.css';

/** The table of collectives that late ranks lead to. */
const LATE_TABLE = { table: 'collectives', sort: '-skew' };

export default function DistributedView({ payload, run }: { payload: Distributed; run: string }) {
  const { selection, select } = useSelection();
  const { params, span } = selection;
  const selectors = useMemo(() => ({ run: selection.run, span }), [selection.run, span]);
  const put = useCallback(
    (change: Record<string, string>) =>
      select({
        params: Object.fromEntries(
          Object.entries({ ...params, ...change }).filter(([, value]) => value !== ''),
        ),
      }),
    [params, select],
  );
  const onWorker = useCallback((worker: string) => select({ view: 'overview', worker }), [select]);
  const onMerged = (workers: string[], more: Record<string, string> = {}) =>
    select({ view: 'trace', params: { ...more, ranks: writeRanks(workers) } });
  const crumb = [run, plural(payload.ranks.length, 'worker'), backends(payload)].filter(Boolean).join(' · ');
  const places = useMemo(
    () =>
      new Map(
        payload.nodes.flatMap(node =>
          node.processes.map(process => [
            process.worker,
            [
              process.devices
                .map(device => `${device.kind === 'CUDA' ? 'GPU' : device.kind} ${device.id}`)
                .join(', '),
              `process ${process.name}`,
            ]
              .filter(Boolean)
              .join(' · '),
          ]),
        ),
      ),
    [payload],
  );
  return (
    <div className={css.view}>
      <Answer crumb={crumb} why={payload.explanation.length > 0 && <Sentence text={payload.explanation} />}>
        <Sentence text={payload.headline} />
      </Answer>
      <Problems payload={payload} />
      <Maps payload={payload} onLate={(late, step) => put({ ...LATE_TABLE, late, step })} />
      {payload.averages.length > 0 && (
        <Panel
          title="Average step per rank"
          note={payload.averages.length > 9 ? `${formatCount(payload.averages.length)} ranks` : undefined}
          actions={
            <>
              <span className={css.legend}>
                {PARTS.map(([part, title, name]) => (
                  <span key={part}>
                    <i className={`${rankBarsCss.part} ${rankBarsCss[name] ?? ''}`} /> {title}
                  </span>
                ))}
              </span>
              {payload.averages.length > 1 && (
                <Button look="quiet" onClick={() => onMerged(someRanks(payload))}>
                  One timeline
                </Button>
              )}
            </>
          }
        >
          <RankBars
            rows={payload.averages}
            places={places}
            marked={payload.verdict.worker}
            onPick={onWorker}
          />
        </Panel>
      )}
      <Stragglers
        payload={payload}
        onWorker={onWorker}
        onLate={late => put({ ...LATE_TABLE, late, collective: '' })}
      />
      <JobTables payload={payload} selectors={selectors} put={put} onWorker={onWorker} onMerged={onMerged} />
    </div>
  );
}
