import { useMemo, useState } from 'react';
import type { TracePayload } from '../../api/types';
import { useClient } from '../../state/queries';
import { useSelection } from '../../state/selection';
import type { Highlights } from '../../timeline/contract';
import { plainText } from '../../base/text';
import { Sentence } from '../../widgets/Sentence';
import { Tip } from '../../widgets/Term';
import { SourceSettingsMenu } from '../../widgets/SourceFrame';
import { range, useAnswers } from './answers';
import { asideTracks, emptyTracks, flipped } from './tracks/aside';
import { Find } from './find/Find';
import { useFound } from './find/useFound';
import { usePaths, useWalk } from './follow/path';
import { useFollow } from './follow/useFollow';
import { useSelected } from './follow/useSelected';
import { Area } from './panels/Area';
import { Counters } from './panels/Counters';
import { SelectedPanel } from './panels/SelectedPanel';
import { ALL, SumsChoice } from './panels/SumsChoice';
import { spokenSlice } from './panels/spoken';
import { traceSource } from './source';
import { Timeline } from './Timeline';
import { Export, Links } from './tools/Export';
import { MiniMap } from './tools/MiniMap';
import { Shown } from './tools/Shown';
import { Legend, Tracks } from './tools/Tools';
import { deepTracks, useLayout, useTimeline } from './useTimeline';

/** Parameters that a link in the headline leaves as they are. */
const KEPT = [
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

/** One trace with all that can be asked about it. */
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
  const first = useMemo(() => asideTracks(payload), [payload]);
  const empty = useMemo(() => emptyTracks(payload), [payload]);
  const hidden = flipped(first, state.hidden);
  const aside = [...hidden, ...empty];
  // The slices come first; what stands beside them would only make the server slower.
  const answers = useAnswers(payload, selectors, state, shown, timeline.loading === false, aside);
  const { added } = answers;
  const selected = useSelected(members, state, python);
  const { current, flows, place } = selected;
  const deep = deepTracks(state.deep, place);
  // What is selected is seen, wherever it lies.
  const unseen = aside.filter(id => id !== place?.track);
  const layout = useLayout(payload, { folded, deep, hidden: unseen, pinned, order, filter });
  const { paths, error } = usePaths(members, shown, state.path && timeline.loading === false);
  const at = state.event === null ? shown.begin : (current?.start_ns ?? null);
  const found = useFound(payload, members, state, at, shown);
  const highlights = useMemo<Highlights>(
    () => ({
      area,
      marks: state.marks,
      selected: place,
      arrows: selected.arrows,
      lit: found.lit ?? paths?.lit ?? selected.lit,
    }),
    [area, state.marks, place, selected.arrows, selected.lit, paths, found.lit],
  );
  const follow = useFollow(flows, state.event, chooseEvent);
  const walk = useWalk(paths?.each[0], state.event, shown, chooseEvent);
  const choice = (
    <SumsChoice payload={payload} options={ALL} chosen={state.sums} onPick={sums => change({ sums }, true)} />
  );
  const togglePath = () => change({ path: !state.path });
  const togglePython = () => {
    const { python: _, ...others } = params;
    select({ params: python ? others : { ...others, python: 'true' } });
  };

  const files = {
    whole: client.address('download', selectors),
    readable: client.address(payload.perfetto ? 'download' : 'slice', selectors),
    part: client.address('slice', { ...selectors, ...range(shown.begin, shown.end) }),
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
      headline={<Sentence text={answers.inSight?.headline ?? payload.headline} keepParams={KEPT} />}
      why={<Sentence text={answers.inSight?.detail ?? []} />}
      tools={
        <>
          <Find payload={payload} found={found} timeline={timeline} />
          <Tracks
            payload={payload}
            state={{ ...state, hidden }}
            empty={empty}
            filter={filter}
            onFilter={setFilter}
            onChange={next => change(next.hidden ? { ...next, hidden: flipped(first, next.hidden) } : next)}
          />
          <Shown {...{ payload, timeline, paths, togglePython, togglePath }}>
            {payload.reasons.wall && (
              <Tip
                label="Why is there no wall clock?"
                entry={{ title: 'Wall clock', text: plainText(payload.reasons.wall) }}
              />
            )}
          </Shown>
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
        // What lies around it may be shared with others in a box.
        ...(current?.around.length && { ArrowUp: () => chooseEvent(current.around.at(-1)!.event) }),
      }}
      onArea={next => change({ area: next })}
      error={selected.error ?? error}
      spoken={spokenSlice(current, payload) || plainText(selected.moment?.headline ?? [])}
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
        (current || selected.moment || (added && area)) && (
          <>
            <SelectedPanel
              selected={selected}
              timeline={timeline}
              classes={payload.classes}
              onView={(view, next) => select({ view, params: next })}
            />
            {added && area && answers.counters && (
              <Counters
                counters={answers.counters}
                selection={added}
                choice={choice}
                payload={payload}
                time={time}
                onZoom={() => zoomTo(area)}
                onClose={() => change({ area: null })}
              />
            )}
            {added && area && !answers.counters && (
              <Area
                selection={added}
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
