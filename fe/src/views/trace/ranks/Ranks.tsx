import { useMemo, useState } from 'react';
import type { Connections, TraceEvent } from '../../../api/types';
import { useClient, useView } from '../../../state/queries';
import { writeRanks } from '../../../state/ranks';
import { useSelection } from '../../../state/selection';
import type { Highlights } from '../../../timeline/contract';
import { memberOf, mergedId, mergePayloads } from '../../../timeline/tiles/merge';
import { Button } from '../../../widgets/inputs/Button';
import { Select } from '../../../widgets/inputs/Select';
import { Icon } from '../../../widgets/Icon';
import { Sentence } from '../../../widgets/Sentence';
import { Find } from '../find/Find';
import { useFound } from '../find/useFound';
import { placeOf } from '../follow/flows';
import { Details } from '../panels/Details';
import { spokenSlice } from '../panels/spoken';
import type { TraceState } from '../state';
import { Timeline } from '../Timeline';
import { MiniMap } from '../tools/MiniMap';
import { CLOCKS, COLORS, Legend, Tracks } from '../tools/Tools';
import { deepTracks, spanOf, useLayout, useTimeline } from '../useTimeline';
import { asideTracks, drawable, flipped, foldedTracks, lateFirst } from './arranged';
import { joinedEvents } from './joined';
import { RankPicker } from './RankPicker';
import { RanksArea } from './RanksArea';
import { ranksSource, type Aligned } from './source';
import { useRankColors } from './useRankColors';
import { useRankMap } from './useRankMap';

/** Parameters that mean the same for other ranks. */
const KEPT = ['at', 'color', 'clock', 'find', 'regex'];
/** A name has another number on each rank. */
const RANK_COLORS = COLORS.filter(([by]) => by !== 'name');

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
  const { selection, select } = useSelection();
  const count = members.length;
  const origin = connections.origin_ns ?? 0;
  const payload = useMemo(() => drawable(mergePayloads(members, origin)), [members, origin]);
  const timeline = useTimeline(payload);
  const { state, change, shown, time, controller, chooseEvent, zoomTo } = timeline;
  const { area } = state;
  const [filter, setFilter] = useState('');
  const { by, recolored } = useRankColors(run, members, state.color);
  const source = useMemo(
    () => ranksSource(client, run, members, by, recolored),
    [client, run, members, by, recolored],
  );
  const first = useMemo(() => {
    const late = connections.late.map(at =>
      members.findIndex(m => m.worker === connections.ranks[at]!.worker),
    );
    return {
      hidden: asideTracks(payload),
      folded: foldedTracks(payload),
      order: lateFirst(payload, late, count),
    };
  }, [payload, connections.late, connections.ranks, members, count]);
  const arranged: TraceState = {
    ...state,
    hidden: flipped(first.hidden, state.hidden),
    folded: flipped(first.folded, state.folded),
    order: state.order.length > 0 ? state.order : first.order,
  };
  const arrange = (next: Partial<TraceState>) =>
    change(next.hidden ? { ...next, hidden: flipped(first.hidden, next.hidden) } : next);

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
  const { folded, hidden, pinned, order } = arranged;
  const deep = deepTracks(state.deep, selected);
  const layout = useLayout(payload, { folded, hidden, pinned, order, deep, filter });
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
      colorBy={by}
      layout={layout}
      highlights={highlights}
      crumb={crumb}
      headline={<Sentence text={connections.headline} />}
      why={<Sentence text={connections.details} />}
      tools={
        <>
          <Find payload={payload} found={found} timeline={timeline} />
          <RankPicker
            run={run}
            chosen={chosen}
            onChoose={next =>
              select({
                params: {
                  ...Object.fromEntries(
                    Object.entries(selection.params).filter(([key]) => KEPT.includes(key)),
                  ),
                  ranks: writeRanks(next),
                },
              })
            }
          />
          <Tracks
            payload={payload}
            state={arranged}
            filter={filter}
            onFilter={setFilter}
            onChange={arrange}
          />
          <Select
            label="Color by"
            value={state.color === 'name' ? 'class' : state.color}
            options={RANK_COLORS}
            onChange={color => change({ color })}
          />
          <Select
            label="Time from"
            value={state.clock}
            options={CLOCKS}
            onChange={clock => change({ clock })}
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
      legend={<Legend by={by} payload={payload} colors={recolored && { by, texts: recolored.texts }} />}
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
