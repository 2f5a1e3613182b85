import { useMemo, useState } from 'react';
import type { ConnectionsPayload } from '../../../api/types';
import { plainText } from '../../../base/text';
import { useClient } from '../../../state/queries';
import { writeRanks } from '../../../state/ranks';
import { useSelection } from '../../../state/selection';
import type { Highlights } from '../../../timeline/contract';
import { mergePayloads } from '../../../timeline/tiles/merge';
import { Icon } from '../../../widgets/Icon';
import { Sentence } from '../../../widgets/Sentence';
import { Button } from '../../../widgets/inputs/Button';
import { Timeline } from '../Timeline';
import { Find } from '../find/Find';
import { useSearch } from '../find/search';
import { usePaths, usePathWalk } from '../follow/path';
import { useFollow, useSelectedSlice } from '../follow/useSelectedSlice';
import { SLICE_KINDS, KindChoice } from '../panels/AreaFrame';
import { SelectedPanel, describeSlice } from '../panels/SelectedPanel';
import { type AlignedRank, ranksSource } from '../source';
import type { TraceState } from '../state';
import { MiniMap } from '../tools/MiniMap';
import { Legend } from '../tools/Legend';
import { DisplayOptions, Tracks } from '../tools/Tools';
import { toggleAll, stragglersFirst, initiallyHiddenOfRanks } from '../trackSets';
import { deepTracks, useLayout, useTimeline } from '../useTimeline';
import { RankPicker } from './RankPicker';
import { RanksArea } from './RanksArea';
import { joinedEvents, useRankColors, useRankMap } from './answers';

/** Parameters that stay valid when the ranks change. */
const SHARED_PARAMS = ['at', 'color', 'clock', 'find', 'regex', 'python', 'path', 'sums'];

interface Props {
  run: string;
  crumb: string;
  members: AlignedRank[];
  connections: ConnectionsPayload;
  chosen: readonly string[];
}

/** The timeline of several ranks with aligned clocks. */
export function RanksTimeline({ run, crumb, members, connections, chosen }: Props) {
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
      hidden: initiallyHiddenOfRanks(payload, late, count),
      order: stragglersFirst(payload, late, count),
    };
  }, [payload, connections.late, connections.ranks, members, count]);
  const arranged: TraceState = {
    ...state,
    hidden: toggleAll(first.hidden, state.hidden),
    order: state.order.length > 0 ? state.order : first.order,
  };
  const arrange = (next: Partial<TraceState>) =>
    change(next.hidden ? { ...next, hidden: toggleAll(first.hidden, next.hidden) } : next);

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
  const selected = useSelectedSlice(traces, state, python);
  const { current, flows, place, merged } = selected;
  const member = members[selected.index]!;
  const { folded, hidden, pinned, order } = arranged;
  const deep = deepTracks(state.deep, place);
  // The selected slice is visible even on a hidden track.
  const unseen = hidden.filter(id => id !== place?.track);
  const layout = useLayout(payload, { folded, hidden: unseen, pinned, order, deep, filter });
  const joined = useMemo(
    () => joinedEvents(connections, members, payload, state.event),
    [connections, members, payload, state.event],
  );
  const at = state.event === null ? shown.begin : (place?.start ?? null);
  const found = useSearch(payload, traces, state, at, shown);
  const { paths, error } = usePaths(traces, shown, state.path && timeline.hasDrawn);
  const map = useRankMap(run, members, payload, timeline.loading === false, hidden);
  const highlights = useMemo<Highlights>(
    () => ({
      area,
      marks: state.marks,
      selected: place,
      arrows: selected.arrows,
      highlight: found.highlight ?? paths?.highlight ?? selected.highlight,
      joinedEvents: joined,
    }),
    [area, state.marks, place, selected.arrows, selected.highlight, paths, joined, found.highlight],
  );
  const follow = useFollow(flows, selected.event, id => chooseEvent(id === null ? null : merged(id)));
  const walk = usePathWalk(paths?.byTrace[selected.index], state.event, shown, chooseEvent);
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
                    Object.entries(selection.params).filter(([key]) => SHARED_PARAMS.includes(key)),
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
          <DisplayOptions {...{ payload, timeline, paths, togglePython, togglePath }} />
          <Button onClick={() => select({ view: 'distributed', params: {} })}>
            <Icon name="left" size={14} /> <span data-wide>Back to the job</span>
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
        // The enclosing slice may be merged into a box, which the controller can't select.
        ...(current?.around.length && { ArrowUp: () => chooseEvent(merged(current.around.at(-1)!.event)) }),
      }}
      onArea={next => change({ area: next })}
      error={selected.error ?? error}
      legend={<Legend by={by} payload={payload} colors={colors} tile={map.tile} />}
      saved={{ subject: `Timeline of ${members.map(({ title }) => title).join(', ')}`, traces, colors }}
      announcement={
        current || selected.moment
          ? `${member.title}: ${describeSlice(current, member.payload) || plainText(selected.moment?.headline ?? [])}`
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
                  <KindChoice
                    payload={payload}
                    options={SLICE_KINDS}
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
