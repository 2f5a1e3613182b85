import { useComputedColorScheme } from '@mantine/core';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { TracePayload } from '../../api/types';
import { formatDuration } from '../../base/format';
import { useClient } from '../../state/queries';
import { useSelection } from '../../state/selection';
import type { Controller } from '../../timeline/controller';
import type { Highlights } from '../../timeline/contract';
import { arrange } from '../../timeline/draw/layout';
import type { Arrow, Place } from '../../timeline/draw/overlay';
import type { Span } from '../../timeline/tiles/store';
import { since, wallClock } from '../../base/ticks';
import { whole } from '../../timeline/viewport';
import { Answer, Mark } from '../../widgets/Answer';
import { Icon } from '../../widgets/Icon';
import { Select } from '../../widgets/inputs/Select';
import { SourceSettingsMenu } from '../../widgets/SourceFrame';
import { Area } from './panels/Area';
import { Canvas } from './tracks/Canvas';
import { Details } from './panels/Details';
import { Export } from './tools/Export';
import { Find } from './tools/Find';
import { MiniMap } from './tools/MiniMap';
import { CLOCKS, COLORS, Legend, Tracks } from './tools/Tools';
import { sentence } from './select';
import { readTraceState, toggled, writeTraceState, type TraceState } from './state';
import css from './Timeline.module.css';
import { movement, PAN_PX, useKeys } from './keys';
import { Hint } from './panels/Hint';
import { range, useAnswers } from './answers';
import { arrows } from './flows';
import { traceSource } from './source';

const EMPTY: readonly Arrow[] = [];

interface Props {
  payload: TracePayload;
  crumb: string;
}

/** One trace with all that can be asked about it. */
export function OneTrace({ payload, crumb }: Props) {
  const client = useClient();
  const { selection, select } = useSelection();
  const { params } = selection;
  const state = useMemo(() => readTraceState(params), [params]);
  const theme = useComputedColorScheme('light');
  const { run, worker, span } = selection;
  const selectors = useMemo(() => ({ run, worker, span }), [run, worker, span]);
  const python = payload.python;
  const [controller, setController] = useState<Controller | null>(null);
  const [filter, setFilter] = useState('');
  const [loading, setLoading] = useState<boolean | null>(null);
  // The slices come first; what stands beside them would only make the server slower.
  const drawn = loading === false;
  const [trouble, setTrouble] = useState<string | null>(null);
  const shown = state.window ?? whole({ begin: payload.begin_ns, end: payload.end_ns });

  const change = useCallback(
    (next: Partial<TraceState>, quiet = false) => select({ params: writeTraceState(params, next) }, quiet),
    [params, select],
  );

  const source = useMemo(
    () => traceSource(client, selectors, python, state.color),
    [client, selectors, python, state.color],
  );

  const folded = state.folded.join();
  const hidden = state.hidden.join();
  const pinned = state.pinned.join();
  const order = state.order.join();
  const layout = useMemo(
    () =>
      arrange(payload, {
        folded: new Set(folded.split(',')),
        hidden: new Set(hidden.split(',').filter(Boolean).map(Number)),
        pinned: pinned.split(',').filter(Boolean).map(Number),
        order: order.split(',').filter(Boolean).map(Number),
        filter,
      }),
    [payload, folded, hidden, pinned, order, filter],
  );

  const { current, flows, module, added, inSight, colors, map, error } = useAnswers(
    payload,
    selectors,
    state,
    shown,
    drawn,
  );
  const chosen = state.event !== null;
  const area = state.area;
  const place = useMemo<Place | null>(
    () =>
      current && current.track !== null && current.depth !== null && current.start_ns !== null
        ? {
            track: current.track,
            depth: current.depth,
            start: current.start_ns,
            duration: current.duration_ns ?? 0,
          }
        : null,
    [current],
  );
  const highlights = useMemo<Highlights>(() => {
    return {
      area,
      marks: state.marks,
      selected: place,
      arrows: flows ? arrows(flows) : EMPTY,
      lit: flows && flows.kernels.length > 0 ? new Set([flows.event, ...flows.kernels]) : null,
    };
  }, [area, state.marks, place, flows]);

  // An event that a link leads to is brought into sight; a click on what is in sight moves nothing.
  const seen = useRef<number | null>(null);
  useEffect(() => {
    if (!controller || !place || seen.current === state.event) {
      return;
    }
    seen.current = state.event;
    const { begin, end } = controller.window;
    if (
      place.start + place.duration < begin ||
      place.start > end ||
      (!state.window && params.area === undefined)
    ) {
      controller.zoomTo({ begin: place.start, end: place.start + place.duration });
    }
    const row = layout.rows.find(each => each.track?.id === place.track);
    const scroller = document.querySelector('[data-part=tracks]');
    if (row && scroller) {
      const y = row.y + place.depth * row.lane;
      const room = scroller.clientHeight - 80;
      if (y < scroller.scrollTop || y > scroller.scrollTop + room) {
        scroller.scrollTop = Math.max(0, y - room / 2);
      }
    }
  }, [controller, place, state.event, state.window, params.area, layout]);

  const origin =
    state.clock === 'step'
      ? (payload.steps.findLast(step => step.start_ns <= (shown.begin + shown.end) / 2)?.start_ns ?? 0)
      : 0;
  const time = (ns: number) =>
    state.clock === 'wall'
      ? wallClock(payload.base_ns + payload.trace_start_ns, ns)
      : since(ns - origin, Math.max((shown.end - shown.begin) / 1000, 1));
  const chooseEvent = (next: number | null) => {
    if (next !== state.event) {
      change({ event: next });
    }
  };
  // A key pressed before the links of the selection are here is obeyed when they are.
  const wish = useRef<{ event: number | null; direction: 'previous' | 'next' } | null>(null);
  const follow = (direction: 'previous' | 'next') => {
    wish.current = flows ? null : { event: state.event, direction };
    if (flows) {
      chooseEvent(flows[direction][0] ?? state.event);
    }
  };
  useEffect(() => {
    const { event: from, direction } = wish.current ?? { event: null, direction: 'next' };
    const next = flows?.event === from ? flows?.[direction][0] : undefined;
    if (flows) {
      wish.current = null;
    }
    if (next !== undefined) {
      change({ event: next });
    }
  }, [flows, change]);
  const open = (view: string, next: Record<string, string>) => select({ view, params: next });
  const zoomTo = (target: Span | null) => (target ? controller?.zoomTo(target) : controller?.showAll());

  useKeys(key => {
    if (!controller) {
      return false;
    }
    const neighbor = (direction: -1 | 1) =>
      place && chooseEvent(controller.neighbor(place, direction) ?? state.event);
    const actions: Record<string, () => unknown> = {
      ...movement(controller),
      f: () => zoomTo(place ? { begin: place.start, end: place.start + place.duration } : area),
      m: () =>
        change({
          marks: place
            ? [...state.marks, place.start].sort((a, b) => a - b)
            : area
              ? [area.begin, area.end]
              : [],
        }),
      p: () => {
        const { python: _, ...rest } = params;
        select({ params: python ? rest : { ...rest, python: 'true' } });
      },
      '/': () => document.querySelector<HTMLInputElement>('[data-find]')?.focus(),
      '[': () => follow('previous'),
      ']': () => follow('next'),
      ArrowLeft: () => (place ? neighbor(-1) : controller.panBy(-PAN_PX)),
      ArrowRight: () => (place ? neighbor(1) : controller.panBy(PAN_PX)),
      ArrowUp: () => chooseEvent(current?.around.at(-1)?.event ?? state.event),
      ArrowDown: () => place && chooseEvent(controller.inside(place) ?? state.event),
      Escape: () => (chosen ? change({ event: null }) : change({ area: null })),
    };
    const name = key.key.length === 1 ? key.key.toLowerCase() : key.key;
    const action = actions[name];
    if (!action || (name === 'Escape' && !chosen && !area)) {
      return false;
    }
    action();
    return true;
  });

  const said = sentence(payload, inSight, shown);
  const window = range(shown.begin, shown.end);
  return (
    <div className={`${css.view} fill`}>
      <Answer
        crumb={`${crumb} · ${time(shown.begin)} to ${time(shown.end)}`}
        why={`${formatDuration(shown.end - shown.begin)} shown${said.why}`}
      >
        {said.before}
        {said.mark && <Mark color={said.color}>{said.mark}</Mark>}
        {said.after}
      </Answer>
      <div className={css.tools}>
        <Find
          payload={payload}
          selectors={selectors}
          python={python}
          at={current?.start_ns ?? shown.begin}
          event={state.event}
          onEvent={chooseEvent}
        />
        <Tracks payload={payload} state={state} filter={filter} onFilter={setFilter} onChange={change} />
        {payload.counts.python_slices > 0 && (
          <button
            type="button"
            className="button"
            aria-pressed={python}
            title="Python frames (p)"
            onClick={() => {
              const { python: _, ...rest } = params;
              select({ params: python ? rest : { ...rest, python: 'true' } });
            }}
          >
            Python
          </button>
        )}
        <Select label="Color by" value={state.color} options={COLORS} onChange={color => change({ color })} />
        <Select
          label="Time from"
          value={state.clock}
          options={CLOCKS}
          onChange={clock => change({ clock })}
        />
        <span className={css.actions}>
          <Legend by={state.color} payload={payload} colors={colors} />
          <button
            type="button"
            className="button quiet"
            title="Show all of it"
            aria-label="Show all of it"
            onClick={() => controller?.showAll()}
          >
            <Icon name="fit" size={14} />
          </button>
          <SourceSettingsMenu />
          <Export
            whole={client.address('download', selectors)}
            part={client.address('slice', { ...selectors, ...window })}
            window={shown}
            title={crumb}
          />
        </span>
      </div>
      <MiniMap
        payload={payload}
        tile={map.tile}
        tracks={map.tracks}
        window={shown}
        key={theme}
        onWindow={next => controller?.showWindow(next)}
      />
      {trouble !== null && (
        <p className={css.trouble} data-part="trouble" role="alert">
          {trouble}{' '}
          <button type="button" className="textlink" onClick={() => setTrouble(null)}>
            Hide
          </button>
        </p>
      )}
      <div
        className={`${css.frame} ${loading && !drawn ? css.loading : ''}`}
        data-part="timeline"
        data-state={drawn ? 'drawn' : loading ? 'loading' : undefined}
      >
        <Canvas
          payload={payload}
          source={source}
          colorBy={state.color}
          layout={layout}
          highlights={highlights}
          clock={state.clock}
          origin={origin}
          initial={state.window}
          theme={theme}
          onReady={setController}
          onWindow={next => change({ window: next }, true)}
          onLoading={setLoading}
          onTrouble={error =>
            setTrouble(error instanceof Error ? error.message : 'The server does not answer.')
          }
          onSelect={chooseEvent}
          onArea={next => change({ area: next })}
          onFold={key => change({ folded: toggled(state.folded, key) })}
          onPin={track => change({ pinned: toggled(state.pinned, track) })}
        />
      </div>
      <div className={`${css.below} ${current && added ? css.both : ''}`}>
        {current && (
          <Details
            event={current}
            flows={flows}
            module={module}
            classes={payload.classes}
            time={time}
            onEvent={chooseEvent}
            onView={open}
            onZoom={() => place && zoomTo({ begin: place.start, end: place.start + place.duration })}
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
        {!current && !added && <Hint error={error} />}
      </div>
    </div>
  );
}
