import { useMemo, useState } from 'react';
import type { ConnectionsPayload } from '../../../api/types';
import { useClient } from '../../../state/queries';
import { writeRanks } from '../../../state/ranks';
import { useSelection } from '../../../state/selection';
import type { Highlights } from '../../../timeline/contract';
import { mergePayloads } from '../../../timeline/tiles/merge';
import { Button } from '../../../widgets/inputs/Button';
import { Icon } from '../../../widgets/Icon';
import { plainText } from '../../../base/text';
import { Sentence } from '../../../widgets/Sentence';
import { flipped } from '../tracks/aside';
import { Find } from '../find/Find';
import { useFound } from '../find/useFound';
import { usePaths, useWalk } from '../follow/path';
import { useFollow } from '../follow/useFollow';
import { useSelected } from '../follow/useSelected';
import { SelectedPanel } from '../panels/SelectedPanel';
import { SLICES, SumsChoice } from '../panels/SumsChoice';
import { spokenSlice } from '../panels/spoken';
import type { TraceState } from '../state';
import { Timeline } from '../Timeline';
import { MiniMap } from '../tools/MiniMap';
import { Shown } from '../tools/Shown';
import { Legend, Tracks } from '../tools/Tools';
import { deepTracks, useLayout, useTimeline } from '../useTimeline';
import { lateFirst, partingTracks } from './arranged';
import { joinedEvents } from './joined';
import { RankPicker } from './RankPicker';
import { RanksArea } from './RanksArea';
import { ranksSource, type Aligned } from './source';
import { useRankColors } from './useRankColors';
import { useRankMap } from './useRankMap';

/** Parameters that mean the same for other ranks. */
const KEPT = ['at', 'color', 'clock', 'find', 'regex', 'python', 'path', 'sums'];

interface Props {
  run: string;
  crumb: string;
  members: Aligned[];
  connections: ConnectionsPayload;
  chosen: readonly string[];
}

/** The timeline of ranks that are aligned. */
export function Ranks({ run, crumb, members, connections, chosen }: Props) {
  const client = useClient();
  const { selection, select } = useSelection();
  const count = members.length;
  const origin = connections.origin_ns ?? 0;
  const payload = useMemo(() => mergePayloads(members, origin), [members, origin]);
  const timeline = useTimeline(payload);
  const { state, change, shown, time, controller, chooseEvent, zoomTo } = timeline;
  const { area } = state;
  const sums = state.sums === 'counter' ? 'all' : state.sums;
  const { python } = payload;
  const [filter, setFilter] = useState('');
  const { by, recolored } = useRankColors(run, members, state.color);
  const colors = recolored && { by, texts: recolored.texts };
  const source = useMemo(
    () => ranksSource(client, run, members, python, by, recolored),
    [client, run, members, python, by, recolored],
  );
  const first = useMemo(() => {
    const late = connections.late.map(at =>
      members.findIndex(m => m.worker === connections.ranks[at]!.worker),
    );
    return {
      hidden: partingTracks(payload, late, count),
      order: lateFirst(payload, late, count),
    };
  }, [payload, connections.late, connections.ranks, members, count]);
  const arranged: TraceState = {
    ...state,
    hidden: flipped(first.hidden, state.hidden),
    order: state.order.length > 0 ? state.order : first.order,
  };
  const arrange = (next: Partial<TraceState>) =>
    change(next.hidden ? { ...next, hidden: flipped(first.hidden, next.hidden) } : next);

  const traces = useMemo(
    () =>
      members.map(({ title, worker, span, shift, payload: own }) => ({
        title,
        selectors: { run, worker, span },
        shift,
        payload: own,
      })),
    [run, members],
  );
  const selected = useSelected(traces, state, python);
  const { current, flows, place, merged } = selected;
  const member = members[selected.index]!;
  const { folded, hidden, pinned, order } = arranged;
  const deep = deepTracks(state.deep, place);
  // What is selected is seen, wherever it lies.
  const unseen = hidden.filter(id => id !== place?.track);
  const layout = useLayout(payload, { folded, hidden: unseen, pinned, order, deep, filter });
  const joined = useMemo(
    () => joinedEvents(connections, members, payload, state.event),
    [connections, members, payload, state.event],
  );
  const at = state.event === null ? shown.begin : (place?.start ?? null);
  const found = useFound(payload, traces, state, at, shown);
  const { paths, error } = usePaths(traces, shown, state.path && timeline.loading === false);
  const map = useRankMap(run, members, payload, timeline.loading === false, hidden);
  const highlights = useMemo<Highlights>(
    () => ({
      area,
      marks: state.marks,
      selected: place,
      arrows: selected.arrows,
      lit: found.lit ?? paths?.lit ?? selected.lit,
      joined,
    }),
    [area, state.marks, place, selected.arrows, selected.lit, paths, joined, found.lit],
  );
  const follow = useFollow(flows, selected.event, id => chooseEvent(id === null ? null : merged(id)));
  const walk = useWalk(paths?.each[selected.index], state.event, shown, chooseEvent);
  const togglePath = () => change({ path: !state.path });
  const togglePython = () => {
    const { python: _, ...others } = selection.params;
    select({ params: python ? others : { ...others, python: 'true' } });
  };
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
          <Shown {...{ payload, timeline, paths, togglePython, togglePath }} />
          <Button onClick={() => select({ view: 'distributed', params: {} })}>
            <Icon name="left" size={14} /> <span data-wide>The job</span>
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
        p: togglePython,
        c: togglePath,
        '[': () => (state.path ? walk(-1) : follow('previous')),
        ']': () => (state.path ? walk(1) : follow('next')),
        e: () => change({ area: shown }),
        // What lies around it may be shared with others in a box.
        ...(current?.around.length && { ArrowUp: () => chooseEvent(merged(current.around.at(-1)!.event)) }),
      }}
      onArea={next => change({ area: next })}
      error={selected.error ?? error}
      legend={<Legend by={by} payload={payload} colors={colors} tile={map.tile} />}
      saved={{ subject: `Timeline of ${members.map(({ title }) => title).join(', ')}`, traces, colors }}
      spoken={
        current || selected.moment
          ? `${member.title}: ${spokenSlice(current, member.payload) || plainText(selected.moment?.headline ?? [])}`
          : ''
      }
      panel={
        (current || selected.moment || area) && (
          <>
            <SelectedPanel
              selected={selected}
              timeline={timeline}
              classes={member.payload.classes}
              onView={(view, next) =>
                select({ view, worker: member.worker, span: member.span, params: next })
              }
            />
            {area && (
              <RanksArea
                run={run}
                members={members}
                area={area}
                sums={sums}
                choice={
                  <SumsChoice
                    payload={payload}
                    options={SLICES}
                    chosen={sums}
                    onPick={next => change({ sums: next }, true)}
                  />
                }
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
