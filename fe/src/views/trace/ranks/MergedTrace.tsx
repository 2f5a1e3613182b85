// Several ranks on one timeline: aligned on the clock of the job, with their collectives connected.
import { useQueries } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { ConnectionsPayload, TracePayload } from '../../../api/types';
import { plural } from '../../../base/format';
import { useClient, useView } from '../../../state/queries';
import { readRanks, writeRanks } from '../../../state/ranks';
import { useSelection } from '../../../state/selection';
import { Answer } from '../../../widgets/Answer';
import { Sentence, TextWithCode } from '../../../widgets/Sentence';
import { readTraceState } from '../state';
import { MAX_TIMELINE_RANKS } from './RankPicker';
import { RanksTimeline } from './RanksTimeline';

/** Time between two requests while a rank is read, ms. */
const WAIT_MS = 500;

export function MergedTrace({ run, crumb }: { run: string; crumb: string }) {
  const client = useClient();
  const { selection } = useSelection();
  const { params, span } = selection;
  const chosen = useMemo(() => readRanks(params).slice(0, MAX_TIMELINE_RANKS), [params]);
  const selectors = useMemo(() => ({ run, span }), [run, span]);
  const { window } = useMemo(() => readTraceState(params), [params]);
  const answer = useView<ConnectionsPayload>('distributed/connections', selectors, {
    workers: writeRanks(chosen),
    ...(window && { begin: String(Math.floor(window.begin)), end: String(Math.ceil(window.end)) }),
  });
  const job = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const python = params.python === 'true';
  const frames: Record<string, string> = python ? { python: 'true' } : {};
  const traces = useQueries({
    queries: chosen.map(worker => ({
      queryKey: ['view', 'trace', { run, worker, span }, frames],
      queryFn: () => client.view<TracePayload>('trace', { run, worker, span }, frames),
      refetchInterval: (query: { state: { data?: { state: string } } }) =>
        query.state.data?.state === 'ready' ? (false as const) : WAIT_MS,
      staleTime: 30_000,
    })),
  });
  const answers = traces.map(trace => (trace.data?.state === 'ready' ? trace.data.payload : undefined));
  const ranks = job?.ranks;
  const ready =
    answers.every(payload => payload !== undefined) &&
    ranks !== undefined &&
    ranks.every(rank => rank.state === 'ready' || rank.state === 'failed');
  const key = ready ? `${python}\n${ranks.map(rank => `${rank.worker} ${rank.shift_ns}`).join('\n')}` : '';
  const aligned = useMemo(() => {
    if (!ready) {
      return null;
    }
    return ranks.flatMap((rank, i) =>
      rank.shift_ns === null
        ? []
        : [
            {
              title: rank.rank === null ? rank.worker : `rank ${rank.rank}`,
              worker: rank.worker,
              span: rank.span,
              shift: rank.shift_ns,
              payload: answers[i]!,
            },
          ],
    );
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- the shifts and traces of the same ranks do not change
  }, [key]);
  if (job && aligned && aligned.length > 0) {
    return (
      <RanksTimeline key={key} run={run} crumb={crumb} members={aligned} connections={job} chosen={chosen} />
    );
  }
  const failed = answer.error ?? traces.find(trace => trace.error)?.error;
  return (
    <div aria-busy={!failed && !aligned}>
      <Answer
        crumb={crumb}
        why={failed ? <TextWithCode text={failed.message} /> : plural(chosen.length, 'rank')}
      >
        {failed ? (
          'These ranks can’t be shown on one timeline.'
        ) : job && aligned ? (
          <Sentence text={job.headline} />
        ) : (
          'Loading the ranks.'
        )}
      </Answer>
    </div>
  );
}
