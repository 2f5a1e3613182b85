// Several ranks on one timeline: aligned by the clock of the job, with their collectives joined.
import { useComputedColorScheme } from '@mantine/core';
import { useQueries } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { Connections, TraceEvent, TracePayload } from '../../../api/types';
import { plural } from '../../../base/format';
import { useClient, useView } from '../../../state/queries';
import { readRanks, writeRanks } from '../../../state/ranks';
import { useSelection } from '../../../state/selection';
import type { Controller } from '../../../timeline/controller';
import type { Highlights, Joined } from '../../../timeline/contract';
import { arrange } from '../../../timeline/draw/layout';
import { memberOf, mergedId, mergePayloads } from '../../../timeline/tiles/merge';
import type { Place } from '../../../timeline/draw/overlay';
import { since, wallClock } from '../../../base/ticks';
import { whole } from '../../../timeline/viewport';
import { Answer } from '../../../widgets/Answer';
import { Icon } from '../../../widgets/Icon';
import { Canvas } from '../tracks/Canvas';
import { Details } from '../panels/Details';
import { movement, useKeys } from '../keys';
import { readTraceState, toggled, writeTraceState, type TraceState } from '../state';
import pageCss from '../Timeline.module.css';
import { RankPicker, MOST } from './RankPicker';
import { ranksSource, spoken, type Aligned } from './source';

const WAIT_MS = 500;
const NOTHING: readonly Joined[] = [];

export function Merged({ run, crumb }: { run: string; crumb: string }) {
  const client = useClient();
  const { selection } = useSelection();
  const { params, span } = selection;
  const state = useMemo(() => readTraceState(params), [params]);
  const chosen = useMemo(() => readRanks(params).slice(0, MOST), [params]);
  const selectors = useMemo(() => ({ run, span }), [run, span]);
  const window = state.window;
  const answer = useView<Connections>('distributed/connections', selectors, {
    workers: writeRanks(chosen),
    ...(window && { begin: String(Math.floor(window.begin)), end: String(Math.ceil(window.end)) }),
  });
  const job = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const traces = useQueries({
    queries: chosen.map(worker => ({
      queryKey: ['view', 'trace', { run, worker, span }, {}],
      queryFn: () => client.view<TracePayload>('trace', { run, worker, span }, {}),
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
  const key = ready ? ranks.map(rank => `${rank.worker} ${rank.shift_ns}`).join('\n') : '';
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
  return aligned && aligned.length > 0 ? (
    <Timelines
      key={key}
      run={run}
      crumb={crumb}
      members={aligned}
      connections={job}
      state={state}
      chosen={chosen}
      left={ranks?.filter(rank => rank.shift_ns === null).map(rank => rank.worker) ?? []}
    />
  ) : (
    <Answer
      crumb={crumb}
      why={
        answer.error?.message ??
        traces.find(trace => trace.error)?.error?.message ??
        plural(chosen.length, 'rank')
      }
    >
      {aligned ? 'The clocks of these ranks cannot be aligned.' : 'Reading the ranks.'}
    </Answer>
  );
}

/** Counters, and what the profiler says of itself: they would part the ranks. */
const isAside = (track: TracePayload['tracks'][number], payload: TracePayload): boolean =>
  track.kind === 'counter' || (track.group !== null && payload.groups[track.group]!.kind === 'profiler');

interface Props {
  run: string;
  crumb: string;
  members: Aligned[];
  connections: Connections | undefined;
  state: TraceState;
  chosen: readonly string[];
  /** Ranks whose clocks cannot be aligned. */
  left: readonly string[];
}

function Timelines({ run, crumb, members, connections, state, chosen, left }: Props) {
  const client = useClient();
  const { selection, select } = useSelection();
  const { params } = selection;
  const theme = useComputedColorScheme('light');
  const [controller, setController] = useState<Controller | null>(null);
  const [loading, setLoading] = useState<boolean | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const count = members.length;
  const origin = connections?.origin_ns ?? 0;
  const payload = useMemo(() => mergePayloads(members, origin), [members, origin]);
  const change = useCallback(
    (next: Partial<TraceState>, quiet = false) => select({ params: writeTraceState(params, next) }, quiet),
    [params, select],
  );
  const source = useMemo(() => ranksSource(client, run, members), [client, run, members]);

  const folded = state.folded.join();
  const pinned = state.pinned.join();
  const threads = useMemo(() => {
    const streams = payload.tracks.some(track => track.kind === 'stream');
    const some = payload.tracks.filter(
      track => streams && (track.kind === 'thread' || track.kind === 'instants'),
    );
    return new Set(some.map(track => String(track.id)));
  }, [payload]);
  const layout = useMemo(
    () =>
      arrange(payload, {
        // The threads are folded at first: what the ranks have in common is on the streams.
        folded: new Set(
          [...folded.split(','), ...threads].filter(
            id => !(folded.split(',').includes(id) && threads.has(id)),
          ),
        ),
        hidden: new Set(payload.tracks.filter(track => isAside(track, payload)).map(track => track.id)),
        pinned: pinned.split(',').filter(Boolean).map(Number),
        order: [],
        filter: '',
      }),
    [payload, folded, pinned, threads],
  );

  const picked = state.event === null ? null : memberOf(state.event, count);
  const about = picked ? members[picked.index] : undefined;
  const eventAnswer = useView<TraceEvent>(
    'trace/event',
    { run, worker: about?.worker, span: about?.span },
    { event: String(picked?.id ?? 0) },
    about !== undefined,
  );
  const event = about && eventAnswer.data?.state === 'ready' ? eventAnswer.data.payload : undefined;
  const current = event && event.event === picked?.id ? event : undefined;
  const place = useMemo<Place | null>(
    () =>
      current &&
      about &&
      picked &&
      current.track !== null &&
      current.depth !== null &&
      current.start_ns !== null
        ? {
            track: mergedId(current.track, picked.index, count),
            depth: current.depth,
            start: current.start_ns + about.shift,
            duration: current.duration_ns ?? 0,
          }
        : null,
    [current, about, picked, count],
  );
  const tracks = useMemo(
    () =>
      members.map((_, index) =>
        payload.tracks
          .filter(
            track =>
              (track.kind === 'stream' || track.kind === 'thread') &&
              memberOf(track.id, count).index === index,
          )
          .sort((a, b) => Number(b.role === 'communication') - Number(a.role === 'communication'))
          .map(track => track.id),
      ),
    [members, payload, count],
  );
  const highlights = useMemo<Highlights>(() => {
    const index = new Map(members.map((member, i) => [member.worker, i]));
    const joined =
      connections?.rows.map(row => {
        const ends = row.members.flatMap((rank, i) => {
          const at = index.get(connections.ranks[rank]!.worker);
          return at === undefined
            ? []
            : [
                {
                  event: mergedId(row.events[i]!, at, count),
                  start: row.starts_ns[i]!,
                  duration: row.ends_ns[i]! - row.starts_ns[i]!,
                  tracks: tracks[at]!,
                },
              ];
        });
        return { ends, strong: ends.some(end => end.event === state.event) };
      }) ?? NOTHING;
    return { area: null, marks: state.marks, selected: place, arrows: [], lit: null, joined };
  }, [connections, members, tracks, count, place, state.event, state.marks]);

  const seen = useRef<number | null>(null);
  useEffect(() => {
    if (controller && place && seen.current !== state.event) {
      seen.current = state.event;
      const { begin, end } = controller.window;
      if (place.start + place.duration < begin || place.start > end) {
        controller.zoomTo({ begin: place.start, end: place.start + place.duration });
      }
    }
  }, [controller, place, state.event]);

  const shown = state.window ?? whole({ begin: payload.begin_ns, end: payload.end_ns });
  const time = (ns: number) =>
    state.clock === 'wall'
      ? wallClock(payload.base_ns, ns)
      : since(ns, Math.max((shown.end - shown.begin) / 1000, 1));
  useKeys(keyed => {
    if (!controller) {
      return false;
    }
    const actions: Record<string, () => unknown> = {
      ...movement(controller),
      f: () =>
        place
          ? controller.zoomTo({ begin: place.start, end: place.start + place.duration })
          : controller.showAll(),
      Escape: () => change({ event: null }),
    };
    const action = actions[keyed.key.length === 1 ? keyed.key.toLowerCase() : keyed.key];
    action?.();
    return action !== undefined;
  });
  const joinedCount = connections?.total ?? 0;
  return (
    <div className={`${pageCss.view} fill`}>
      <Answer
        crumb={`${crumb} · ${time(shown.begin)} to ${time(shown.end)}`}
        why={
          <>
            {plural(joinedCount, 'collective')} in sight
            {connections &&
              joinedCount > connections.rows.length &&
              `, the longest ${connections.rows.length} of them`}
            , joined from rank to rank: on the left who arrives when, on the right where all go on.
            {left.length > 0 && ` Left out, as their clocks cannot be aligned: ${left.join(', ')}.`}
          </>
        }
      >
        {spoken(members)} on the clock of the job.
      </Answer>
      <div className={pageCss.tools}>
        <RankPicker
          run={run}
          chosen={chosen}
          onChoose={next => select({ params: { ranks: writeRanks(next) } })}
        />
        <button type="button" className="button" onClick={() => select({ view: 'distributed', params: {} })}>
          <Icon name="left" size={14} /> The job
        </button>
        <span className={pageCss.actions}>
          <button
            type="button"
            className="button quiet"
            title="Show all of it"
            aria-label="Show all of it"
            onClick={() => controller?.showAll()}
          >
            <Icon name="fit" size={14} />
          </button>
        </span>
      </div>
      {trouble && (
        <p className={pageCss.trouble} data-part="trouble">
          {trouble}
        </p>
      )}
      <div
        className={`${pageCss.frame} ${loading ? pageCss.loading : ''}`}
        data-part="timeline"
        data-state={loading === false ? 'drawn' : loading ? 'loading' : undefined}
      >
        <Canvas
          payload={payload}
          source={source}
          colorBy="class"
          layout={layout}
          highlights={highlights}
          clock={state.clock}
          origin={0}
          initial={state.window}
          theme={theme}
          onReady={setController}
          onWindow={next => change({ window: next }, true)}
          onLoading={setLoading}
          onTrouble={error => setTrouble(error instanceof Error ? error.message : String(error))}
          onSelect={next => change({ event: next })}
          onArea={area => area && controller?.zoomTo(area)}
          onFold={fold => change({ folded: toggled(state.folded, fold) })}
          onPin={track => change({ pinned: toggled(state.pinned, track) })}
        />
      </div>
      {current && about && (
        <div className={pageCss.below}>
          <Details
            event={current}
            flows={undefined}
            module={undefined}
            classes={about.payload.classes}
            time={ns => time(ns + about.shift)}
            onEvent={next => change({ event: mergedId(next, picked!.index, count) })}
            onView={(view, next) => select({ view, worker: about.worker, span: about.span, params: next })}
            onZoom={() =>
              place && controller?.zoomTo({ begin: place.start, end: place.start + place.duration })
            }
            onClose={() => change({ event: null })}
          />
        </div>
      )}
    </div>
  );
}
