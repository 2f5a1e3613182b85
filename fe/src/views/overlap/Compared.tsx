import { useMemo } from 'react';
import type { OverlapComparison, Selectors, Workers } from '../../api/types';
import { formatDuration, formatRatio } from '../../base/format';
import { useView, useWorkers } from '../../state/queries';
import { Select } from '../../widgets/inputs/Select';
import { Panel } from '../../widgets/Panel';
import { Sentence } from '../../widgets/Sentence';
import css from './index.module.css';

interface Props {
  candidate: { run: string; span: string };
  /** The base run; empty: none. */
  base: string;
  runs: readonly string[];
  onBase: (run: string) => void;
}

/** All ranks of this run next to all ranks of another run. */
export function Compared({ candidate, base, runs, onBase }: Props) {
  const own = useWorkers(candidate.run).data;
  const other = useWorkers(base || undefined).data;
  const request = useMemo(() => pair(own, candidate.span, other), [own, candidate.span, other]);
  const answer = useView<OverlapComparison>(
    'overlap/compare',
    request?.selectors ?? {},
    request?.params ?? {},
    request !== null,
  );
  const compared = request && answer.data?.state === 'ready' ? answer.data.payload : null;
  return (
    <Panel
      title="Compare with another run"
      actions={
        <Select
          label="Run"
          value={base}
          options={[['', 'none'], ...runs.map(name => [name, name] as const)]}
          onChange={onBase}
        />
      }
    >
      {answer.error && request && <p>{answer.error.message}</p>}
      {compared && (
        <>
          <p>
            <Sentence text={compared.headline} />
          </p>
          <table className={css.figures} aria-label="Compared">
            <thead>
              <tr>
                <th>Mean per iteration</th>
                <th>{base}</th>
                <th>{candidate.run}</th>
              </tr>
            </thead>
            <tbody>
              {compared.rows.map(row => {
                const format = row.is_ratio ? formatRatio : formatDuration;
                return (
                  <tr key={row.name}>
                    <td>{row.name}</td>
                    <td>{row.base === null ? '–' : format(row.base)}</td>
                    <td>{row.candidate === null ? '–' : format(row.candidate)}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </>
      )}
    </Panel>
  );
}

/** The recordings of both sides: those of a span of this run, and the first of every worker of the other. */
function pair(own: Workers | undefined, span: string, other: Workers | undefined) {
  const [first, ...rest] = own?.workers.filter(each => each.spans.some(one => one.name === span)) ?? [];
  const [baseFirst, ...baseRest] = other?.workers ?? [];
  if (!own || !other || !first || !baseFirst) {
    return null;
  }
  const selectors: Selectors = { run: own.run, worker: first.name, span };
  const params = {
    also: JSON.stringify(rest.map(each => [own.run, each.name, span])),
    base_run: other.run,
    base_worker: baseFirst.name,
    base_span: '1',
    base_also: JSON.stringify(baseRest.map(each => [other.run, each.name, '1'])),
  };
  return { selectors, params };
}
