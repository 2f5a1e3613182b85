// The page of a timeline, whatever its tracks stand for: the answer, the tools, the drawing with its keys.
import { useState, type ReactNode } from 'react';
import type { TracePayload } from '../../api/types';
import type { Highlights, Source } from '../../timeline/contract';
import type { ColorBy } from '../../timeline/draw/colors';
import type { Layout } from '../../timeline/draw/layout';
import type { Span } from '../../timeline/tiles/store';
import { Button } from '../../widgets/inputs/Button';
import { Answer } from '../../widgets/Answer';
import { Icon } from '../../widgets/Icon';
import { keyOf, keysOf, useKeys, type Keys } from './keys';
import { Dock } from './panels/Dock';
import { Status } from './panels/Status';
import { toggled } from './state';
import { Save, type Saved } from './tools/Save';
import css from './Timeline.module.css';
import { Canvas } from './tracks/Canvas';
import { useInSight, type Timeline as State } from './useTimeline';

interface Props {
  timeline: State;
  payload: TracePayload;
  source: Source;
  colorBy: ColorBy;
  layout: Layout;
  highlights: Highlights;
  crumb: string;
  headline: ReactNode;
  why: ReactNode;
  /** Left above the drawing, and right. */
  tools: ReactNode;
  actions?: ReactNode;
  /** What is saved beside the picture. */
  saved: Saved;
  strip?: ReactNode;
  /** Keys of its own. */
  keys?: Keys;
  onArea: (area: Span | null) => void;
  /** What is known of the selection; null while nothing is selected. */
  panel: ReactNode;
  /** What a screen reader says of the selection. */
  spoken: string;
  error: string | null;
  legend?: ReactNode;
}

export function Timeline(props: Props) {
  const { timeline, payload, layout, highlights, crumb } = props;
  const { state, change, shown, time, controller, loading, chooseEvent, zoomTo } = timeline;
  const [trouble, setTrouble] = useState<string | null>(null);
  useInSight(timeline, layout, highlights.selected);
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
            title="Show all of it"
            aria-label="Show all of it"
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
            onWindow={timeline.windows.rested}
            onLoading={timeline.setLoading}
            onTrouble={error =>
              setTrouble(error instanceof Error ? error.message : 'The server does not answer.')
            }
            onSelect={chooseEvent}
            onMoment={timeline.chooseMoment}
            onArea={props.onArea}
            onFold={key => change({ folded: toggled(state.folded, key) })}
            onDeep={track => change({ deep: toggled(state.deep, track) })}
            onPin={track => change({ pinned: toggled(state.pinned, track) })}
          />
        </div>
      </Dock>
      <p className="visually-hidden" role="status" data-part="spoken">
        {props.spoken}
      </p>
      <Status error={props.error} legend={props.legend} />
    </div>
  );
}
