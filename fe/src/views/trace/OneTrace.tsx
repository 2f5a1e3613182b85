import { useMemo, useState } from 'react';
import type { TracePayload } from '../../api/types';
import { formatCount } from '../../base/format';
import { useClient } from '../../state/queries';
import { useSelection } from '../../state/selection';
import type { Highlights } from '../../timeline/contract';
import type { Arrow } from '../../timeline/draw/overlay';
import { Button } from '../../widgets/inputs/Button';
import { Select } from '../../widgets/inputs/Select';
import { plain, Sentence } from '../../widgets/Sentence';
import { Tip } from '../../widgets/Term';
import { SourceSettingsMenu } from '../../widgets/SourceFrame';
import { range, useAnswers } from './answers';
import { Find } from './find/Find';
import { useFound } from './find/useFound';
import { arrows, blameArrow, launched, placeOf, placeOfMoment } from './follow/flows';
import { useLit, useWalk } from './follow/path';
import { Area } from './panels/Area';
import { Details } from './panels/Details';
import { Waiting } from './panels/Waiting';
import { spokenSlice } from './panels/spoken';
import { traceSource } from './source';
import { Timeline } from './Timeline';
import { Export } from './tools/Export';
import { MiniMap } from './tools/MiniMap';
import { CLOCKS, COLORS, Legend, Tracks } from './tools/Tools';
import { useFollow } from './follow/useFollow';
import { deepTracks, spanOf, useLayout, useTimeline } from './useTimeline';

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
const NO_ARROWS: readonly Arrow[] = [];

/** One trace with all that can be asked about it. */
export function OneTrace({ payload, crumb }: { payload: TracePayload; crumb: string }) {
  const client = useClient();
  const { selection, select } = useSelection();
  const { run, worker, span, params } = selection;
  const selectors = useMemo(() => ({ run, worker, span }), [run, worker, span]);
  const timeline = useTimeline(payload);
  const { state, change, shown, time, controller, chooseEvent, zoomTo } = timeline;
  const { folded, hidden, pinned, order, color, area } = state;
  const { python } = payload;
  const [filter, setFilter] = useState('');
  const source = useMemo(
    () => traceSource(client, selectors, python, color),
    [client, selectors, python, color],
  );
  // The slices come first; what stands beside them would only make the server slower.
  const answers = useAnswers(payload, selectors, state, shown, timeline.loading === false);
  const { current, flows, added, moment } = answers;
  const selected = useMemo(
    () => (current ? placeOf(current) : moment ? placeOfMoment(moment) : null),
    [current, moment],
  );
  const deep = deepTracks(state.deep, selected);
  const layout = useLayout(payload, { folded, deep, hidden, pinned, order, filter });
  const lit = useLit(answers.path);
  const traces = useMemo(() => [{ selectors, shift: 0 }], [selectors]);
  const found = useFound(
    payload,
    traces,
    state,
    state.event === null ? shown.begin : (current?.start_ns ?? null),
    shown,
  );
  const highlights = useMemo<Highlights>(
    () => ({
      area,
      marks: state.marks,
      selected,
      arrows: flows ? arrows(flows) : moment ? blameArrow(moment) : NO_ARROWS,
      lit: found.lit ?? lit ?? (flows ? launched(flows) : null),
    }),
    [area, state.marks, selected, flows, moment, lit, found.lit],
  );
  const follow = useFollow(flows, state.event, chooseEvent);
  const walk = useWalk(answers.path, state.event, shown, chooseEvent);
  const togglePath = () => change({ path: !state.path });
  const togglePython = () => {
    const { python: _, ...others } = params;
    select({ params: python ? others : { ...others, python: 'true' } });
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
      headline={<Sentence text={answers.inSight?.headline ?? payload.headline} keep={KEPT} />}
      why={<Sentence text={answers.inSight?.detail ?? []} />}
      tools={
        <>
          <Find payload={payload} found={found} timeline={timeline} />
          <Tracks payload={payload} state={state} filter={filter} onFilter={setFilter} onChange={change} />
          {payload.counts.python_slices > 0 && (
            <Button aria-pressed={python} title="Python frames (p)" onClick={togglePython}>
              Python
            </Button>
          )}
          {payload.steps.length > 0 && (
            <Button aria-pressed={state.path} title="Light the critical path (c)" onClick={togglePath}>
              Path
            </Button>
          )}
          {answers.path && answers.path.more > 0 && (
            <span className="dim">{formatCount(answers.path.more)} more of the path when zoomed in</span>
          )}
          <Select
            label="Color by"
            value={color}
            options={COLORS}
            onChange={next => change({ color: next })}
          />
          <Select
            label="Time from"
            value={state.clock === 'wall' && payload.wall_ns === null ? 'trace' : state.clock}
            options={CLOCKS.filter(([clock]) => clock !== 'wall' || payload.wall_ns !== null)}
            onChange={clock => change({ clock })}
          />
          {payload.reasons.wall && (
            <Tip
              label="Why is there no wall clock?"
              entry={{ title: 'Wall clock', text: plain(payload.reasons.wall) }}
            />
          )}
        </>
      }
      actions={
        <>
          <SourceSettingsMenu />
          {!client.report && (
            <Export
              whole={client.address('download', selectors)}
              part={client.address('slice', { ...selectors, ...range(shown.begin, shown.end) })}
              window={shown}
              title={crumb}
            />
          )}
        </>
      }
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
      error={answers.error}
      spoken={spokenSlice(current, payload) || plain(moment?.headline ?? [])}
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
        (current || moment || (added && area)) && (
          <>
            {moment && (
              <Waiting
                moment={moment}
                time={time}
                onEvent={chooseEvent}
                onMoment={timeline.chooseMoment}
                onZoom={() => selected && zoomTo(spanOf(selected))}
                onClose={() => change({ moment: null })}
              />
            )}
            {current && (
              <Details
                event={current}
                flows={flows}
                module={answers.module}
                classes={payload.classes}
                time={time}
                onEvent={chooseEvent}
                onView={(view, next) => select({ view, params: next })}
                onZoom={() => selected && zoomTo(spanOf(selected))}
                onClose={() => change({ event: null })}
              />
            )}
            {added && area && (
              <Area
                selection={added}
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
