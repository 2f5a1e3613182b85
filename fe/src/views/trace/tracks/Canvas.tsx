// The drawing with its track labels: hands pointer and size to the controller, and what was pointed at to the page.
import { useEffect, useRef, useState, type PointerEvent } from 'react';
import type { TracePayload } from '../../../api/types';
import { readSetting, writeSetting } from '../../../base/browser/settings';
import { isWork } from '../../../base/causes';
import { Controller } from '../../../timeline/controller';
import type { Highlights, Source } from '../../../timeline/contract';
import type { ColorBy } from '../../../timeline/draw/colors';
import type { Layout } from '../../../timeline/draw/layout';
import { HEAD } from '../../../timeline/draw/overlay';
import type { Span } from '../../../timeline/tiles/store';
import { formatTimeOfDay, type Clock } from '../../../base/ticks';
import type { Moment } from '../state';
import { Labels } from './Labels';
import { Pointer, type Pointed } from './Pointer';
import { onPinch, wheelOf } from './wheel';
import { WheelHint } from './WheelHint';
import css from './Canvas.module.css';

interface Props {
  payload: TracePayload;
  source: Source;
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
  onTrouble: (error: unknown) => void;
  onSelect: (event: number | null) => void;
  onMoment: (moment: Moment) => void;
  onArea: (area: Span | null) => void;
  onFold: (key: string) => void;
  onDeep: (track: number) => void;
  onPin: (track: number) => void;
}

const DRAG = 4;
/** How near an edge of the selected area is taken hold of, px. */
const EDGE = 5;
/** The setting that says that somebody zoomed with the wheel, and so knows how. */
const ZOOMS = 'wheel.zooms';

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
    const made = new Controller(
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
        onTrouble: error => latest.current.onTrouble(error),
      },
      latest.current.initial,
    );
    setController(made);
    latest.current.onReady(made);
    const node = scroller.current!;
    const observer = new ResizeObserver(() => {
      const width = stage.current!.clientWidth;
      made.resize(width, node.clientHeight);
      setView(now => ({ ...now, height: node.clientHeight, width }));
    });
    observer.observe(node);
    let zooms = readSetting(ZOOMS) === true;
    const zoom = (factor: number, clientX: number) => {
      if (!zooms) {
        zooms = true;
        writeSetting(ZOOMS, true);
      }
      made.zoomBy(factor, clientX - stage.current!.getBoundingClientRect().left);
    };
    const onWheel = (event: WheelEvent) => {
      const wheel = wheelOf(event, node.clientHeight);
      if (wheel.does === 'scroll') {
        const before = node.scrollTop;
        const farthest = node.scrollHeight - node.clientHeight;
        const stands = event.deltaY > 0 ? before >= farthest - 1 : before <= 0;
        // Nothing moves, or nobody has zoomed with the wheel yet: this may have been meant to.
        setHinted(stands || !zooms);
        return;
      }
      event.preventDefault();
      setHinted(false);
      if (wheel.does === 'zoom') {
        zoom(wheel.factor, event.clientX);
      } else {
        made.panBy(wheel.pixels);
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
      made.destroy();
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
  /** Of the area whose edge is near, the time of the other one. */
  const heldAt = (x: number): number | null => {
    const { area } = latest.current.highlights;
    if (!controller || !area) {
      return null;
    }
    const [from, to] = [controller.timeAt(x - EDGE), controller.timeAt(x + EDGE)];
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
    const held = drag.current;
    if (!controller) {
      return;
    }
    if (!held) {
      const found = controller.hover(x, y);
      setPointed(found && { hit: found.hit, blame: found.blame, x, y });
      stage.current!.dataset.edge = String(heldAt(x) !== null);
      return;
    }
    held.moved ||= Math.abs(x - held.x) > DRAG;
    if (held.moved && held.pans) {
      controller.panBy(held.x - x);
      held.x = x;
    } else if (held.moved) {
      setPointed(null);
      controller.setHighlights({
        ...latest.current.highlights,
        area: ordered(held.from, controller.timeAt(x)),
      });
    }
  };
  const onPointerUp = (event: PointerEvent) => {
    const { x, y } = place(event);
    const held = drag.current;
    drag.current = null;
    if (!controller || !held || held.pans) {
      return;
    }
    if (held.moved) {
      props.onArea(ordered(held.from, controller.timeAt(x)));
      return;
    }
    const step = controller.stepAt(x, y);
    if (step) {
      props.onArea(step);
    } else if (y >= HEAD) {
      choose(controller.hit(x, y));
    }
  };
  const chooseInSight = () => {
    const event = latest.current.highlights.selected ? null : controller?.sliceBeside(null, 'in');
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
      <div className={css.inner} style={{ height: layout.height + HEAD }}>
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
          aria-label="Timeline: Enter selects a slice in sight, the arrow keys go to those beside, around and inside it"
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
              whole={controller.wholeNameOf(pointed.hit.name)}
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
