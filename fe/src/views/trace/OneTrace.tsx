import { useEffect, useMemo, useRef, useState } from 'react';
import type { TraceEvent, TraceMoment, TracePayload } from '../../api/types';
import { plainText } from '../../base/text';
import { useClient } from '../../state/queries';
import { useSelection } from '../../state/selection';
import type { Highlights } from '../../timeline/contract';
import { Sentence } from '../../widgets/Sentence';
import { SourceSettingsMenu } from '../../widgets/SourceFrame';
import { Tip } from '../../widgets/Term';
import type { TraceState } from './state';
import { Timeline } from './Timeline';
import { rangeParams, useAnswers } from './answers';
import { Find } from './find/Find';
import { useSearch } from './find/search';
import { usePaths, usePathWalk } from './follow/path';
import { useFollow, useSelectedSlice } from './follow/useSelectedSlice';
import { Area } from './panels/Area';
import { ALL_KINDS, KindChoice } from './panels/AreaFrame';
import { SelectedCounters } from './panels/SelectedCounters';
import { SelectedPanel, describeSlice } from './panels/SelectedPanel';
import { traceSource } from './source';
import { Export, Links } from './tools/Export';
import { MiniMap } from './tools/MiniMap';
import { Legend } from './tools/Legend';
import { DisplayOptions, Tracks } from './tools/Tools';
import { initiallyHidden, emptyTracks, toggleAll } from './trackSets';
import { deepTracks, useLayout, useTimeline } from './useTimeline';

/** Parameters that a link in the headline keeps. */
const KEPT_PARAMS = [
  'python',
  'pins',
  'folded',
  'deep',
  'hidden',
  'order',
  'color',
  'clock',
  'marks',
  'path',
  'find',
  'regex',
];

/** Unfold the Python frames if the link that was opened leads to one of them, or to what one of them is blamed for. */
function useUnfoldedFrames(
  payload: TracePayload,
  { event, moment }: TraceState,
  current: TraceEvent | undefined,
  blamed: TraceMoment | undefined,
  unfold: () => void,
) {
  const linked = useRef<string | null>(JSON.stringify([event, moment]));
  const depth = event === null ? blamed?.subject?.depth : current?.depth;
  useEffect(() => {
    if (depth === undefined || linked.current !== JSON.stringify([event, moment])) {
      return;
    }
    linked.current = null; // from now on the user decides
    if (depth === null && !payload.python && payload.tracks.some(track => track.python_slices > 0)) {
      unfold();
    }
  });
}

/** The timeline of one trace. */
export function OneTrace({ payload, crumb }: { payload: TracePayload; crumb: string }) {
  const client = useClient();
  const { selection, select } = useSelection();
  const { run, worker, span, params } = selection;
  const selectors = useMemo(() => ({ run, worker, span }), [run, worker, span]);
  const timeline = useTimeline(payload);
  const { state, change, shown, time, controller, chooseEvent, zoomTo } = timeline;
  const { folded, pinned, order, color, area } = state;
  const members = useMemo(() => [{ title: '', selectors, shift: 0, payload }], [selectors, payload]);
  const { python } = payload;
  const [filter, setFilter] = useState('');
  const source = useMemo(
    () => traceSource(client, selectors, python, color),
    [client, selectors, python, color],
  );
  const first = useMemo(() => initiallyHidden(payload), [payload]);
  const empty = useMemo(() => emptyTracks(payload), [payload]);
  const hidden = toggleAll(first, state.hidden);
  const aside = [...hidden, ...empty];
  // Other requests wait for the slices: they would slow the server down.
  const answers = useAnswers(payload, selectors, state, shown, timeline.loading === false, aside);
  const { selection: areaSelection } = answers;
  const selected = useSelectedSlice(members, state, python);
  const { current, flows, place } = selected;
  useUnfoldedFrames(payload, state, current, selected.moment, () =>
    select(now => ({ params: { ...now.params, python: 'true' } }), true),
  );
  const deep = deepTracks(state.deep, place);
  // The selected slice is visible even on a hidden track.
  const unseen = aside.filter(id => id !== place?.track);
  const layout = useLayout(payload, { folded, deep, hidden: unseen, pinned, order, filter });
  const { paths, error } = usePaths(members, shown, state.path && timeline.hasDrawn);
  const at = state.event === null ? shown.begin : (current?.start_ns ?? null);
  const found = useSearch(payload, members, state, at, shown);
  const highlights = useMemo<Highlights>(
    () => ({
      area,
      marks: state.marks,
      selected: place,
      arrows: selected.arrows,
      highlight: found.highlight ?? paths?.highlight ?? selected.highlight,
    }),
    [area, state.marks, place, selected.arrows, selected.highlight, paths, found.highlight],
  );
  const follow = useFollow(flows, state.event, chooseEvent);
  const walk = usePathWalk(paths?.byTrace[0], state.event, shown, chooseEvent);
  const choice = (
    <KindChoice
      payload={payload}
      options={ALL_KINDS}
      chosen={state.sums}
      onPick={sums => change({ sums }, true)}
    />
  );
  const togglePath = () => change({ path: !state.path });
  const togglePython = () => {
    const { python: _, ...others } = params;
    select({ params: python ? others : { ...others, python: 'true' } });
  };

  const files = {
    original: client.address('download', selectors),
    readable: client.address(payload.perfetto ? 'download' : 'slice', selectors),
    part: client.address('slice', { ...selectors, ...rangeParams(shown.begin, shown.end) }),
    window: shown,
  };
  return (
    <Timeline
      timeline={timeline}
      payload={payload}
      source={source}
      colorBy={color}
      layout={layout}
      highlights={highlights}
      crumb={crumb}
      headline={<Sentence text={answers.headline?.headline ?? payload.headline} keepParams={KEPT_PARAMS} />}
      why={answers.headline && <Sentence text={answers.headline.detail} />}
      tools={
        <>
          <Find payload={payload} found={found} timeline={timeline} />
          <Tracks
            payload={payload}
            state={{ ...state, hidden }}
            empty={empty}
            filter={filter}
            onFilter={setFilter}
            onChange={next => change(next.hidden ? { ...next, hidden: toggleAll(first, next.hidden) } : next)}
          />
          <DisplayOptions {...{ payload, timeline, paths, togglePython, togglePath }}>
            {payload.reasons.wall && (
              <Tip
                label="Why is there no wall clock?"
                entry={{ title: 'Wall clock', text: plainText(payload.reasons.wall) }}
              />
            )}
          </DisplayOptions>
        </>
      }
      actions={
        <>
          <SourceSettingsMenu />
          {!client.report && <Export {...files} title={crumb} />}
        </>
      }
      saved={{
        subject: 'Timeline',
        traces: members,
        colors: answers.colors,
        links: !client.report && <Links {...files} />,
      }}
      strip={
        <MiniMap
          payload={payload}
          tile={answers.map.tile}
          tracks={answers.map.tracks}
          ticks={found.ticks}
          window={shown}
          time={time}
          key={timeline.theme}
          onWindow={next => controller?.showWindow(next)}
        />
      }
      keys={{
        p: togglePython,
        c: togglePath,
        '/': () => document.querySelector<HTMLInputElement>('[data-find]')?.focus(),
        '[': () => (state.path ? walk(-1) : follow('previous')),
        ']': () => (state.path ? walk(1) : follow('next')),
        e: () => change({ area: shown }),
        // The enclosing slice may be merged into a box, which the controller can't select.
        ...(current?.around.length && { ArrowUp: () => chooseEvent(current.around.at(-1)!.event) }),
      }}
      onArea={next => change({ area: next })}
      error={selected.error ?? error}
      announcement={describeSlice(current, payload) || plainText(selected.moment?.headline ?? [])}
      legend={
        <Legend
          by={color}
          payload={payload}
          colors={answers.colors}
          tile={answers.map.tile}
          onFind={find => change({ find, regex: false }, true)}
        />
      }
      panel={
        (current || selected.moment || (areaSelection && area)) && (
          <>
            <SelectedPanel
              selected={selected}
              timeline={timeline}
              classes={payload.classes}
              onView={(view, next) => select({ view, params: next })}
            />
            {areaSelection && area && answers.counters && (
              <SelectedCounters
                counters={answers.counters}
                selection={areaSelection}
                choice={choice}
                payload={payload}
                time={time}
                onZoom={() => zoomTo(area)}
                onClose={() => change({ area: null })}
              />
            )}
            {areaSelection && area && !answers.counters && (
              <Area
                selection={areaSelection}
                choice={choice}
                classes={payload.classes}
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
