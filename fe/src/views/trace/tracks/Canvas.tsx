// The drawing with its track labels: passes pointer and size to the controller, and selections to the page.
import { type PointerEvent, useEffect, useRef, useState } from 'react';
import type { TracePayload } from '../../../api/types';
import { readSetting, writeSetting } from '../../../base/browser/settings';
import { isWork } from '../../../base/causes';
import { type Clock, formatTimeOfDay } from '../../../base/ticks';
import type { Highlights, TileSource } from '../../../timeline/contract';
import { Controller } from '../../../timeline/controller';
import type { ColorBy } from '../../../timeline/draw/colors';
import type { Layout } from '../../../timeline/draw/layout';
import { HEADER_PX } from '../../../timeline/draw/overlay';
import type { Span } from '../../../timeline/tiles/store';
import type { Moment } from '../state';
import css from './Canvas.module.css';
import { Labels } from './Labels';
import { type Pointed, Pointer } from './Pointer';
import { onPinch, wheelOf } from './wheel';

interface Props {
  payload: TracePayload;
  source: TileSource;
  colorBy: ColorBy;
  layout: Layout;
  highlights: Highlights;
  clock: Clock;
  origin: number;
  initial: Span | null;
  theme: string;
  onReady: (controller: Controller) => void;
  onWindow: (window: Span) => void;
  onLoading: (loading: boolean) => void;
  onError: (error: unknown) => void;
  onSelect: (event: number | null) => void;
  onMoment: (moment: Moment) => void;
  onArea: (area: Span | null) => void;
  onFold: (key: string) => void;
  onDeep: (track: number) => void;
  onPin: (track: number) => void;
}

/** A shorter movement of a pressed pointer is a click, px. */
const MIN_DRAG_PX = 4;
/** Distance at which an edge of the selected area can be dragged. */
const EDGE_PX = 5;
/** Setting: the user has zoomed with the wheel before. */
const ZOOMED_SETTING = 'wheel.zooms';

export function Canvas(props: Props) {
  const { payload, source, colorBy, layout, highlights, clock, origin, theme } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const stage = useRef<HTMLDivElement>(null);
  const slices = useRef<HTMLCanvasElement>(null);
  const above = useRef<HTMLCanvasElement>(null);
  const [controller, setController] = useState<Controller | null>(null);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const [hinted, setHinted] = useState(false);
  const [view, setView] = useState({ scroll: 0, height: 0, width: 0 });
  const drag = useRef<{ x: number; y: number; from: number; pans: boolean; moved: boolean } | null>(null);
  const latest = useRef(props);
  useEffect(() => {
    latest.current = props;
  });

  useEffect(() => {
    const created = new Controller(
      stage.current!,
      slices.current!,
      above.current!,
      payload,
      latest.current.source,
      {
        onWindow: window => {
          setPointed(null); // something else is under the pointer now
          latest.current.onWindow(window);
        },
        onLoading: loading => latest.current.onLoading(loading),
        onError: error => latest.current.onError(error),
      },
      latest.current.initial,
    );
    setController(created);
    latest.current.onReady(created);
    const node = scroller.current!;
    const observer = new ResizeObserver(() => {
      const width = stage.current!.clientWidth;
      created.resize(width, node.clientHeight);
      setView(now => ({ ...now, height: node.clientHeight, width }));
    });
    observer.observe(node);
    let zooms = readSetting(ZOOMED_SETTING) === true;
    const zoom = (factor: number, clientX: number) => {
      if (!zooms) {
        zooms = true;
        writeSetting(ZOOMED_SETTING, true);
      }
      created.zoomBy(factor, clientX - stage.current!.getBoundingClientRect().left);
    };
    const onWheel = (event: WheelEvent) => {
      const wheel = wheelOf(event, node.clientHeight);
      if (wheel.does === 'scroll') {
        const before = node.scrollTop;
        const farthest = node.scrollHeight - node.clientHeight;
        const stands = event.deltaY > 0 ? before >= farthest - 1 : before <= 0;
        // Nothing scrolls, or the wheel has never zoomed: the user may have wanted to zoom.
        setHinted(stands || !zooms);
        return;
      }
      event.preventDefault();
      setHinted(false);
      if (wheel.does === 'zoom') {
        zoom(wheel.factor, event.clientX);
      } else {
        created.panBy(wheel.pixels);
      }
    };
    node.addEventListener('wheel', onWheel, { passive: false });
    const unpinch = onPinch(node, (factor, clientX) => {
      setHinted(false);
      zoom(factor, clientX);
    });
    return () => {
      unpinch();
      observer.disconnect();
      node.removeEventListener('wheel', onWheel);
      created.destroy();
    };
  }, [payload]);

  useEffect(() => controller?.setSource(source, colorBy), [controller, source, colorBy]);
  useEffect(() => controller?.setLayout(layout), [controller, layout]);
  useEffect(() => controller?.setHighlights(highlights), [controller, highlights]);
  useEffect(() => controller?.setTheme(theme), [controller, theme]);
  const wall = clock === 'wall' ? payload.wall_ns : null;
  useEffect(() => {
    const label = wall === null ? null : (time: number) => formatTimeOfDay(wall, time);
    controller?.setClock(origin, label);
  }, [controller, origin, wall]);

  const place = (event: PointerEvent | React.MouseEvent) => {
    const box = stage.current!.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  /** Return the time of the selected area's other edge if one edge is near. */
  const heldAt = (x: number): number | null => {
    const { area } = latest.current.highlights;
    if (!controller || !area) {
      return null;
    }
    const [from, to] = [controller.timeAt(x - EDGE_PX), controller.timeAt(x + EDGE_PX)];
    const near = (time: number) => time >= from && time <= to;
    return near(area.begin) ? area.end : near(area.end) ? area.begin : null;
  };
  const onPointerDown = (event: PointerEvent) => {
    const { x, y } = place(event);
    const pans = event.button === 1 || event.shiftKey;
    if (controller && (event.button === 0 || pans)) {
      if (pans) {
        event.preventDefault(); // no scrolling by the middle button; else the frame takes the focus, for the keys
      }
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
      drag.current = { x, y, from: heldAt(x) ?? controller.timeAt(x), pans, moved: false };
    }
  };
  const onPointerMove = (event: PointerEvent) => {
    const { x, y } = place(event);
    const dragged = drag.current;
    if (!controller) {
      return;
    }
    if (!dragged) {
      const found = controller.hover(x, y);
      setPointed(found && { hit: found.hit, blame: found.blame, x, y });
      stage.current!.dataset.edge = String(heldAt(x) !== null);
      return;
    }
    dragged.moved ||= Math.abs(x - dragged.x) > MIN_DRAG_PX;
    if (dragged.moved && dragged.pans) {
      controller.panBy(dragged.x - x);
      dragged.x = x;
    } else if (dragged.moved) {
      setPointed(null);
      controller.setHighlights({
        ...latest.current.highlights,
        area: ordered(dragged.from, controller.timeAt(x)),
      });
    }
  };
  const onPointerUp = (event: PointerEvent) => {
    const { x, y } = place(event);
    const dragged = drag.current;
    drag.current = null;
    if (!controller || !dragged || dragged.pans) {
      return;
    }
    if (dragged.moved) {
      props.onArea(ordered(dragged.from, controller.timeAt(x)));
      return;
    }
    const step = controller.stepAt(x, y);
    if (step) {
      props.onArea(step);
    } else if (y >= HEADER_PX) {
      choose(controller.hit(x, y));
    }
  };
  const chooseInSight = () => {
    const event = latest.current.highlights.selected ? null : controller?.adjacentSlice(null, 'in');
    if (event !== null && event !== undefined) {
      props.onSelect(event);
    }
  };
  const choose = (found: ReturnType<Controller['hit']>) => {
    if (found?.blame && !isWork(found.blame.category)) {
      const { start, duration } = found.hit;
      props.onMoment({ ...found.blame, at: start, until: start + Math.max(duration, 1) });
    } else {
      props.onSelect(found?.hit.event ?? null);
    }
  };
  const onDoubleClick = (event: React.MouseEvent) => {
    const { x, y } = place(event);
    const hit = controller?.hit(x, y)?.hit;
    const span = hit ? { begin: hit.start, end: hit.start + hit.duration } : controller?.stepAt(x, y);
    if (span) {
      controller?.zoomTo(span);
    }
  };
  const leave = () => {
    controller?.hover(null, 0);
    setPointed(null);
    setHinted(false);
  };

  return (
    <div
      ref={scroller}
      className={css.scroller}
      data-part="tracks"
      onScroll={event => {
        const scroll = event.currentTarget.scrollTop;
        controller?.setScroll(scroll);
        setView(now => ({ ...now, scroll }));
      }}
    >
      <div className={css.inner} style={{ height: layout.height + HEADER_PX }}>
        <Labels
          payload={payload}
          layout={layout}
          from={view.scroll - 100}
          to={view.scroll + view.height + 100}
          onFold={props.onFold}
          onDeep={props.onDeep}
          onPin={props.onPin}
        />
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- an application has the keys */}
        <div
          ref={stage}
          className={css.stage}
          data-part="stage"
          role="application"
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- an application has the keys
          tabIndex={0}
          aria-label="Timeline: Enter selects a visible slice, the arrow keys go to the previous, next, enclosing, and nested slices"
          style={{ height: view.height || undefined }}
          onPointerDown={onPointerDown}
          onPointerMove={onPointerMove}
          onPointerUp={onPointerUp}
          onPointerLeave={leave}
          onDoubleClick={onDoubleClick}
          onKeyDown={event => event.key === 'Enter' && chooseInSight()}
        >
          <canvas ref={slices} />
          <canvas ref={above} />
          {hinted && <WheelHint onFaded={() => setHinted(false)} />}
          {pointed && controller && (
            <Pointer
              pointed={pointed}
              name={controller.nameOf(pointed.hit.name)}
              fullName={controller.fullNameOf(pointed.hit.name)}
              code={pointed.hit.name}
              source={source}
              width={view.width}
            />
          )}
        </div>
      </div>
    </div>
  );
}

const ordered = (a: number, b: number): Span => ({ begin: Math.min(a, b), end: Math.max(a, b) });

/** A hint shown when the wheel scrolls and zooming may have been meant; it fades by itself. */
function WheelHint({ onFaded }: { onFaded: () => void }) {
  return (
    <p className={css.hint} data-part="wheel-hint" role="status" onAnimationEnd={onFaded}>
      <kbd>Ctrl</kbd> or <kbd>⌘</kbd> + wheel, or a pinch, zooms · <kbd>Shift</kbd> + wheel pans
    </p>
  );
}
