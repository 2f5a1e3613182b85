import { useComputedColorScheme } from '@mantine/core';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type {
  TraceColours,
  TraceEvent,
  TraceFlows,
  TraceModule,
  TracePayload,
  TraceSelection,
  TraceTile,
} from '../../api/types';
import { formatDuration } from '../../base/format';
import { useClient, useView } from '../../state/queries';
import { readRanks } from '../../state/ranks';
import { useSelection } from '../../state/selection';
import { askNames } from '../../timeline/answer';
import type { Controller, Highlights, Source } from '../../timeline/controller';
import { arrange } from '../../timeline/layout';
import type { Arrow, Place } from '../../timeline/overlay';
import type { Span } from '../../timeline/store';
import { since, wallClock } from '../../timeline/ticks';
import { reader } from '../../timeline/reader';
import { whole } from '../../timeline/viewport';
import { Answer, Mark } from '../../widgets/Answer';
import { Icon } from '../../widgets/Icon';
import { Select } from '../../widgets/Select';
import { SourceSettingsMenu } from '../../widgets/SourceFrame';
import { Area } from './Area';
import { Canvas } from './Canvas';
import { Details } from './Details';
import { Export } from './Export';
import { Find } from './Find';
import { TRACE_KEYS, useKeys } from './keys';
import { Merged } from './Merged';
import { MiniMap } from './MiniMap';
import { CLOCKS, COLOURS, Legend, Tracks } from './Tools';
import { mainTracks, sentence, spokenTracks, workTracks } from './select';
import { readTraceState, writeTraceState, type TraceState } from './state';
import './trace.css';

const ZOOM = 1.4;
const PAN_PX = 120;
const MAP_WIDTH = 800;
const EMPTY: readonly Arrow[] = [];

interface Props {
  payload: TracePayload;
  crumb: string;
}

/** One trace, or several ranks of the run as one. */
export default function TraceView({ payload, crumb, run }: Props & { run: string }) {
  const { selection } = useSelection();
  return readRanks(selection.params).length > 0 ? (
    <Merged run={run} crumb={run} />
  ) : (
    <OneTrace payload={payload} crumb={crumb} />
  );
}

function OneTrace({ payload, crumb }: Props) {
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

  const source = useMemo<Source>(() => {
    const frames: Record<string, string> = python ? { python: 'true' } : {};
    const colour = state.colour === 'name' ? 'class' : state.colour;
    return {
      tile: (begin, end, width, signal) =>
        reader.tile(
          client,
          selectors,
          { ...range(begin, end), width: String(width), colour, ...frames },
          signal,
        ),
      counters: (begin, end, width, signal) =>
        reader.counters(client, selectors, { ...range(begin, end), width: String(width) }, signal),
      names: codes => askNames(client, selectors, codes),
    };
  }, [client, selectors, python, state.colour]);

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

  const about = { event: String(state.event ?? 0), ...(python ? { python: 'true' } : {}) };
  const chosen = state.event !== null;
  const eventAnswer = useView<TraceEvent>('trace/event', selectors, about, chosen);
  const flowsAnswer = useView<TraceFlows>('trace/flows', selectors, about, chosen);
  const moduleAnswer = useView<TraceModule>('trace/module', selectors, about, chosen);
  const module = chosen && moduleAnswer.data?.state === 'ready' ? moduleAnswer.data.payload : undefined;
  const event = chosen && eventAnswer.data?.state === 'ready' ? eventAnswer.data.payload : undefined;
  const current = event?.event === state.event ? event : undefined;
  const flows = chosen && flowsAnswer.data?.state === 'ready' ? flowsAnswer.data.payload : undefined;
  const currentFlows = flows?.event === state.event ? flows : undefined;
  const area = state.area;
  const allWork = workTracks(payload)
    .filter(track => track.kind === 'thread' || track.kind === 'stream')
    .map(track => track.id)
    .join(',');
  const areaAnswer = useView<TraceSelection>(
    'trace/selection',
    selectors,
    { ...spanQuery(area ?? shown, python), tracks: allWork },
    area !== null,
  );
  const added = area && areaAnswer.data?.state === 'ready' ? areaAnswer.data.payload : undefined;
  const windowAnswer = useView<TraceSelection>(
    'trace/selection',
    selectors,
    {
      ...spanQuery(shown, false),
      sort: 'self',
      limit: '1',
      tracks: spokenTracks(payload).join(','),
    },
    drawn,
  );
  const inSight = windowAnswer.data?.state === 'ready' ? windowAnswer.data.payload : undefined;
  const coloursAnswer = useView<TraceColours>(
    'trace/colours',
    selectors,
    { by: state.colour },
    state.colour === 'module' || state.colour === 'process_group',
  );
  const colours = coloursAnswer.data?.state === 'ready' ? coloursAnswer.data.payload : undefined;
  const mapTracks = useMemo(() => mainTracks(payload), [payload]);
  const mapAnswer = useView<TraceTile>(
    'trace/tile',
    selectors,
    {
      ...range(payload.begin_ns, Math.max(payload.end_ns, payload.begin_ns + 1)),
      width: String(MAP_WIDTH),
      tracks: mapTracks.join(','),
    },
    drawn,
  );

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
      arrows: currentFlows ? arrows(currentFlows) : EMPTY,
      lit:
        currentFlows && currentFlows.kernels.length > 0
          ? new Set([currentFlows.event, ...currentFlows.kernels])
          : null,
    };
  }, [area, state.marks, place, currentFlows]);

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
    const scroller = document.querySelector('.tl-scroll');
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
    wish.current = currentFlows ? null : { event: state.event, direction };
    if (currentFlows) {
      chooseEvent(currentFlows[direction][0] ?? state.event);
    }
  };
  useEffect(() => {
    const { event: from, direction } = wish.current ?? { event: null, direction: 'next' };
    const next = currentFlows?.event === from ? currentFlows?.[direction][0] : undefined;
    if (currentFlows) {
      wish.current = null;
    }
    if (next !== undefined) {
      change({ event: next });
    }
  }, [currentFlows, change]);
  const open = (view: string, next: Record<string, string>) => select({ view, params: next });
  const zoomTo = (target: Span | null) => (target ? controller?.zoomTo(target) : controller?.showAll());

  useKeys(key => {
    if (!controller) {
      return false;
    }
    const middle = (controller.window.end - controller.window.begin) / controller.nsPerPixel / 2;
    const neighbour = (direction: -1 | 1) =>
      place && chooseEvent(controller.neighbour(place, direction) ?? state.event);
    const actions: Record<string, () => unknown> = {
      w: () => controller.zoomBy(1 / ZOOM, middle),
      s: () => controller.zoomBy(ZOOM, middle),
      a: () => controller.panBy(-PAN_PX),
      d: () => controller.panBy(PAN_PX),
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
      ArrowLeft: () => (place ? neighbour(-1) : controller.panBy(-PAN_PX)),
      ArrowRight: () => (place ? neighbour(1) : controller.panBy(PAN_PX)),
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
    <div className="trace-view fill">
      <Answer
        crumb={`${crumb} · ${time(shown.begin)} to ${time(shown.end)}`}
        why={`${formatDuration(shown.end - shown.begin)} shown${said.why}`}
      >
        {said.before}
        {said.mark && <Mark color={said.color}>{said.mark}</Mark>}
        {said.after}
      </Answer>
      <div className="tl-tools">
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
        <Select
          label="Colour by"
          value={state.colour}
          options={COLOURS}
          onChange={colour => change({ colour })}
        />
        <Select
          label="Time from"
          value={state.clock}
          options={CLOCKS}
          onChange={clock => change({ clock })}
        />
        <span className="actions">
          <Legend by={state.colour} payload={payload} colours={colours} />
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
        tile={mapAnswer.data?.state === 'ready' ? mapAnswer.data.payload : undefined}
        tracks={mapTracks}
        window={shown}
        key={theme}
        onWindow={next => controller?.showWindow(next)}
      />
      {trouble !== null && (
        <p className="tl-trouble" role="alert">
          {trouble}{' '}
          <button type="button" className="textlink" onClick={() => setTrouble(null)}>
            Hide
          </button>
        </p>
      )}
      <div className={`tl-frame ${drawn ? 'drawn' : loading ? 'loading' : ''}`}>
        <Canvas
          payload={payload}
          source={source}
          colourBy={state.colour}
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
      <div className={`tl-below ${current && added ? 'both' : ''}`}>
        {current && (
          <Details
            event={current}
            flows={currentFlows}
            module={module?.event === state.event ? module : undefined}
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
        {!current && !added && <Hint error={chosen ? (eventAnswer.error?.message ?? null) : null} />}
      </div>
    </div>
  );
}

function Hint({ error }: { error: string | null }) {
  return (
    <div className="tl-hint">
      {error !== null && <p className="search-problem">{error}</p>}
      <p>Click a slice to see all of it; drag over the timeline, or click a step, to add a stretch up.</p>
      <ul>
        {TRACE_KEYS.map(([key, text]) => (
          <li key={key}>
            <kbd>{key}</kbd> {text}
          </li>
        ))}
      </ul>
    </div>
  );
}

const range = (begin: number, end: number) => ({
  begin: String(Math.floor(begin)),
  end: String(Math.max(Math.ceil(end), Math.floor(begin) + 1)),
});

const spanQuery = (window: Span, python: boolean): Record<string, string> => ({
  ...range(window.begin, window.end),
  ...(python ? { python: 'true' } : {}),
});

function toggled<T>(list: readonly T[], item: T): T[] {
  return list.includes(item) ? list.filter(each => each !== item) : [...list, item];
}

/** More arrows than this hide what they join; the lit slices then tell enough. */
const SHOWN_ARROWS = 12;

function arrows(flows: TraceFlows): Arrow[] {
  if (flows.total > SHOWN_ARROWS) {
    return [];
  }
  return flows.edges.flatMap(edge => {
    const [from, to] = [placeOf(edge.source), placeOf(edge.target)];
    const strong = edge.source.event === flows.event || edge.target.event === flows.event;
    const delay = edge.delay_ns === null ? '' : formatDuration(edge.delay_ns);
    const label = edge.kind === 'launch' && delay ? `queued ${delay}` : delay;
    return from && to ? [{ from, to, label: flows.edges.length <= 3 ? label : '', strong }] : [];
  });
}

function placeOf(slice: TraceFlows['edges'][number]['source']): Place | null {
  return slice.depth === null || slice.start_ns === null
    ? null
    : { track: slice.track, depth: slice.depth, start: slice.start_ns, duration: slice.duration_ns ?? 0 };
}
