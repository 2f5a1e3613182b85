import { useMemo } from 'react';
import type { DistributedPayload } from '../../api/types';
import { plural } from '../../base/format';
import { Button } from '../../widgets/inputs/Button';
import { Panel } from '../../widgets/Panel';
import { PARTS, RankBars } from './RankBars';
import { rankNoun, ranksAroundStraggler } from './select';
import css from './index.module.css';
import rankBarsCss from './RankBars.module.css';

interface Props {
  payload: DistributedPayload;
  onWorker: (worker: string) => void;
  onMerged: (workers: string[]) => void;
}

/** The average step of every rank, with where it ran. */
export function Averages({ payload, onWorker, onMerged }: Props) {
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
  const noun = rankNoun(payload);
  if (payload.averages.length === 0) {
    return null;
  }
  return (
    <Panel
      title={`Average ${payload.step_noun} per ${noun}`}
      note={[
        payload.averages.length > 9 && plural(payload.averages.length, noun),
        payload.averages.some(row => row.steps < payload.steps.length) &&
          `of its typical ${payload.step_noun}s`,
      ]
        .filter(Boolean)
        .join(', ')}
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
            <Button onClick={() => onMerged(ranksAroundStraggler(payload))}>One timeline</Button>
          )}
        </>
      }
    >
      <RankBars rows={payload.averages} places={places} marked={payload.verdict.worker} onPick={onWorker} />
    </Panel>
  );
}
