// The page of a timeline, for one trace or several ranks: headline, tools, and the drawing with its keys.
import { type ReactNode, useCallback, useMemo, useState } from 'react';
import type { TracePayload } from '../../api/types';
import type { Highlights, TileSource } from '../../timeline/contract';
import type { ColorBy } from '../../timeline/draw/colors';
import { growLayout } from '../../timeline/draw/grow';
import type { Layout } from '../../timeline/draw/layout';
import { HEADER_PX } from '../../timeline/draw/overlay';
import type { Span } from '../../timeline/tiles/store';
import { Answer } from '../../widgets/Answer';
import { Icon } from '../../widgets/Icon';
import { Button } from '../../widgets/inputs/Button';
import css from './Timeline.module.css';
import findCss from './find/Find.module.css';
import { keyOf, type Keys, keysOf, useKeys } from './keys';
import { Dock } from './panels/Dock';
import { toggleItem } from './state';
import { Save, type SaveOptions } from './tools/Save';
import { Canvas } from './tracks/Canvas';
import { type TimelineState as State, useScrollIntoView } from './useTimeline';

interface Props {
  timeline: State;
  payload: TracePayload;
  source: TileSource;
  colorBy: ColorBy;
  layout: Layout;
  highlights: Highlights;
  crumb: string;
  headline: ReactNode;
  why: ReactNode;
  /** Above the drawing, on the left and on the right. */
  tools: ReactNode;
  actions?: ReactNode;
  /** What the Download menu offers beside the picture. */
  saved: SaveOptions;
  strip?: ReactNode;
  /** Additional keys. */
  keys?: Keys;
  onArea: (area: Span | null) => void;
  /** Details of the selection; null while nothing is selected. */
  panel: ReactNode;
  /** Description of the selection for screen readers. */
  announcement: string;
  error: string | null;
  legend?: ReactNode;
}

export function Timeline(props: Props) {
  const { timeline, payload, highlights, crumb } = props;
  const { ref: frame, height } = useLargestHeight();
  const layout = useMemo(() => growLayout(props.layout, height - HEADER_PX), [props.layout, height]);
  const { state, change, shown, showsAll, time, controller, loading, chooseEvent, zoomTo } = timeline;
  const [trouble, setTrouble] = useState<string | null>(null);
  useScrollIntoView(timeline, layout, highlights.selected);
  useKeys(event => {
    const action = controller && keysOf(timeline, highlights, controller, props.keys)[keyOf(event)];
    action?.();
    return Boolean(action);
  });
  return (
    <div className={`${css.view} fill`}>
      <Answer
        crumb={<span title={crumb}>{`${time(shown.begin)} to ${time(shown.end)}`}</span>}
        why={props.why}
      >
        {props.headline}
      </Answer>
      <div className={css.tools}>
        {props.tools}
        <span className={css.actions}>
          <Button
            look="quiet"
            title="Show the whole trace"
            aria-label="Show the whole trace"
            disabled={showsAll}
            onClick={() => zoomTo(null)}
          >
            <Icon name="fit" size={14} />
          </Button>
          {props.actions}
          <Save {...props.saved} {...{ timeline, payload }} colorBy={props.colorBy} />
        </span>
      </div>
      {props.strip}
      {trouble !== null && (
        <p className={css.trouble} data-part="trouble" role="alert">
          {trouble}{' '}
          <Button look="text" onClick={() => setTrouble(null)}>
            Hide
          </Button>
        </p>
      )}
      <Dock panel={props.panel} holds={state.area ? 'table' : 'details'}>
        <div
          ref={frame}
          className={`${css.frame} ${loading ? css.loading : ''}`}
          data-part="timeline"
          data-state={loading === false ? 'drawn' : loading ? 'loading' : undefined}
        >
          <Canvas
            payload={payload}
            source={props.source}
            colorBy={props.colorBy}
            layout={layout}
            highlights={highlights}
            clock={state.clock}
            origin={timeline.origin}
            initial={state.window}
            theme={timeline.theme}
            onReady={timeline.setController}
            onWindow={timeline.windows.onRest}
            onLoading={timeline.setLoading}
            onError={error =>
              setTrouble(error instanceof Error ? error.message : 'TensorBoard is not responding.')
            }
            onSelect={chooseEvent}
            onMoment={timeline.chooseMoment}
            onArea={props.onArea}
            onFold={key => change({ folded: toggleItem(state.folded, key) })}
            onDeep={track => change({ deep: toggleItem(state.deep, track) })}
            onPin={track => change({ pinned: toggleItem(state.pinned, track) })}
          />
        </div>
      </Dock>
      <p className="visually-hidden" role="status" data-part="announcement">
        {props.announcement}
      </p>
      <Status error={props.error} legend={props.legend} />
    </div>
  );
}

/** Return a ref and its element's largest height so far, px: tracks don't shrink when details open below them. */
function useLargestHeight() {
  const [height, setHeight] = useState(0);
  const ref = useCallback((node: HTMLDivElement) => {
    // Measured before the browser paints, so that tracks are as high at first as they stay.
    const measure = () => setHeight(known => Math.max(known, node.clientHeight));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  return { ref, height };
}

/** The line below the timeline: an error, or what can be done; and the legend. */
function Status({ error, legend }: { error: string | null; legend?: ReactNode }) {
  return (
    <div className={css.status} data-part="status">
      {error === null ? (
        <span className="dim clip">
          Click a slice for details · drag, or click a step, to summarize a time range · <kbd>?</kbd> lists
          the keys
        </span>
      ) : (
        <span className={findCss.problem} role="alert">
          {error}
        </span>
      )}
      {legend}
    </div>
  );
}
