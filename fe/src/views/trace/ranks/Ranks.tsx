import { useMemo } from 'react';
import type { Connections, TraceEvent, TracePayload } from '../../../api/types';
import { useClient, useView } from '../../../state/queries';
import { writeRanks } from '../../../state/ranks';
import { useSelection } from '../../../state/selection';
import type { Highlights, Joined } from '../../../timeline/contract';
import { memberOf, mergedId, mergePayloads } from '../../../timeline/tiles/merge';
import { Button } from '../../../widgets/inputs/Button';
import { Icon } from '../../../widgets/Icon';
import { Sentence } from '../../../widgets/Sentence';
import { Find } from '../find/Find';
import { useFound } from '../find/useFound';
import { placeOf } from '../follow/flows';
import { Details } from '../panels/Details';
import { spokenSlice } from '../panels/spoken';
import { Timeline } from '../Timeline';
import { MiniMap } from '../tools/MiniMap';
import { spanOf, useLayout, useTimeline } from '../useTimeline';
import { RankPicker } from './RankPicker';
import { RanksArea } from './RanksArea';
import { ranksSource, type Aligned } from './source';
import { useRankMap } from './useRankMap';

/** Counters, the blame of devices, and what the profiler says of itself: they would part the ranks. */
const isAside = (track: TracePayload['tracks'][number], payload: TracePayload): boolean =>
  track.kind === 'counter' ||
  track.kind === 'blame' ||
  (track.group !== null && payload.groups[track.group]!.kind === 'profiler');

const isThread = (track: TracePayload['tracks'][number]): boolean =>
  track.kind === 'thread' || track.kind === 'instants';

interface Props {
  run: string;
  crumb: string;
  members: Aligned[];
  connections: Connections;
  chosen: readonly string[];
}

/** The timeline of ranks that are aligned. */
export function Ranks({ run, crumb, members, connections, chosen }: Props) {
  const client = useClient();
  const { select } = useSelection();
  const count = members.length;
  const origin = connections.origin_ns ?? 0;
  const payload = useMemo(() => mergePayloads(members, origin), [members, origin]);
  const timeline = useTimeline(payload);
  const { state, change, shown, time, controller, chooseEvent, zoomTo } = timeline;
  const { area } = state;
  const source = useMemo(() => ranksSource(client, run, members), [client, run, members]);
  const layout = useLayout(payload, {
    folded: foldedTracks(payload, state.folded),
    hidden: payload.tracks.filter(track => isAside(track, payload)).map(track => track.id),
    deep: state.deep,
    pinned: state.pinned,
    order: [],
    filter: '',
  });

  const picked = state.event === null ? null : memberOf(state.event, count);
  const index = picked?.index ?? -1;
  const member = members[index];
  const answer = useView<TraceEvent>(
    'trace/event',
    { run, worker: member?.worker, span: member?.span },
    { event: String(picked?.id ?? 0) },
    member !== undefined,
  );
  const event = member && answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const current = event && event.event === picked?.id ? event : undefined;
  const selected = useMemo(() => {
    const place = current && member ? placeOf(current) : null;
    return (
      place && { ...place, track: mergedId(place.track, index, count), start: place.start + member!.shift }
    );
  }, [current, member, index, count]);
  const joined = useMemo(
    () => joinedEvents(connections, members, payload, state.event),
    [connections, members, payload, state.event],
  );
  const traces = useMemo(
    () => members.map(({ worker, span, shift }) => ({ selectors: { run, worker, span }, shift })),
    [run, members],
  );
  const found = useFound(
    payload,
    traces,
    state,
    state.event === null ? shown.begin : (selected?.start ?? null),
    shown,
  );
  const map = useRankMap(run, members, payload, timeline.loading === false);
  const highlights = useMemo<Highlights>(
    () => ({ area, marks: state.marks, selected, arrows: [], lit: found.lit, joined }),
    [area, state.marks, selected, joined, found.lit],
  );
  return (
    <Timeline
      timeline={timeline}
      payload={payload}
      source={source}
      colorBy="class"
      layout={layout}
      highlights={highlights}
      crumb={crumb}
      headline={<Sentence text={connections.headline} />}
      why={<Sentence text={connections.details} />}
      tools={
        <>
          <Find
            payload={payload}
            found={found}
            query={state.find}
            regex={state.regex}
            onFind={(find, regex) => change({ find, regex }, true)}
            event={state.event}
            onEvent={chooseEvent}
          />
          <RankPicker
            run={run}
            chosen={chosen}
            onChoose={next => select({ params: { ranks: writeRanks(next) } })}
          />
          <Button onClick={() => select({ view: 'distributed', params: {} })}>
            <Icon name="left" size={14} /> The job
          </Button>
        </>
      }
      strip={
        <MiniMap
          payload={payload}
          {...map}
          ticks={found.ticks}
          window={shown}
          time={time}
          key={timeline.theme}
          onWindow={next => controller?.showWindow(next)}
        />
      }
      keys={{
        '/': () => document.querySelector<HTMLInputElement>('[data-find]')?.focus(),
        e: () => change({ area: shown }),
      }}
      onArea={next => change({ area: next })}
      error={null}
      spoken={member ? `${member.title}: ${spokenSlice(current, member.payload)}` : ''}
      panel={
        ((current && member) || area) && (
          <>
            {current && member && (
              <Details
                event={current}
                flows={undefined}
                module={undefined}
                classes={member.payload.classes}
                time={ns => time(ns + member.shift)}
                onEvent={next => change({ event: mergedId(next, index, count) })}
                onView={(view, next) =>
                  select({ view, worker: member.worker, span: member.span, params: next })
                }
                onZoom={() => selected && zoomTo(spanOf(selected))}
                onClose={() => change({ event: null })}
              />
            )}
            {area && (
              <RanksArea
                run={run}
                members={members}
                area={area}
                time={time}
                onEvent={chooseEvent}
                onZoom={() => zoomTo(area)}
                onClose={() => change({ area: null })}
              />
            )}
          </>
        )
      }
    />
  );
}

/** The threads are folded at first: what the ranks have in common is on the streams. */
function foldedTracks(payload: TracePayload, chosen: readonly string[]): string[] {
  const streams = payload.tracks.some(track => track.kind === 'stream');
  const threads = payload.tracks.filter(track => streams && isThread(track)).map(track => String(track.id));
  return [...threads.filter(id => !chosen.includes(id)), ...chosen.filter(id => !threads.includes(id))];
}

/** The collectives with their events on each rank, and the tracks on which these can be. */
function joinedEvents(
  connections: Connections,
  members: readonly Aligned[],
  payload: TracePayload,
  event: number | null,
): readonly Joined[] {
  const count = members.length;
  const tracks = members.map((_, index) =>
    payload.tracks
      .filter(
        track =>
          (track.kind === 'stream' || track.kind === 'thread') && memberOf(track.id, count).index === index,
      )
      .sort((a, b) => Number(b.role === 'communication') - Number(a.role === 'communication'))
      .map(track => track.id),
  );
  const indexes = new Map(members.map((member, i) => [member.worker, i]));
  return connections.rows.map(row => {
    const ends = row.members.flatMap((rank, i) => {
      const at = indexes.get(connections.ranks[rank]!.worker);
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
    return { ends, strong: ends.some(end => end.event === event) };
  });
}
