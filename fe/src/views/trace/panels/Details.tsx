// Everything of the selected event.
import type { TraceEvent, TraceFlows, TraceModule } from '../../../api/types';
import { exactDuration, formatCount, formatDuration, formatNumber } from '../../../base/format';
import { classColor } from '../../../timeline/draw/colors';
import { Button } from '../../../widgets/inputs/Button';
import { CopyButton } from '../../../widgets/inputs/CopyButton';
import { Icon } from '../../../widgets/Icon';
import { Sentence } from '../../../widgets/Sentence';
import { SourceFrame } from '../../../widgets/SourceFrame';
import { SliceLink } from './SliceLink';
import css from './Details.module.css';
import sourceFrameCss from '../../../widgets/SourceFrame.module.css';

interface Props {
  event: TraceEvent;
  flows: TraceFlows | undefined;
  module: TraceModule | undefined;
  classes: readonly string[];
  time: (ns: number) => string;
  onEvent: (event: number) => void;
  onView: (view: string, params: Record<string, string>) => void;
  onZoom: () => void;
  onClose: () => void;
}

export function Details({ event, flows, module, classes, time, onEvent, onView, onZoom, onClose }: Props) {
  const facts: [string, string, string?][] = [];
  if (event.duration_ns !== null) {
    facts.push(['Duration', formatDuration(event.duration_ns), exactDuration(event.duration_ns)]);
  }
  if (event.self_ns !== null && event.self_ns !== event.duration_ns) {
    facts.push(['Self time', formatDuration(event.self_ns), exactDuration(event.self_ns)]);
  }
  facts.push(['Start', event.start_ns === null ? 'not recorded' : time(event.start_ns)]);
  if (event.step !== null) {
    facts.push(['Step', event.step]);
  }
  facts.push(['Category', event.category || 'none'], ['Thread', event.thread]);
  for (const [key, value] of Object.entries(event.args)) {
    if (key !== 'Call stack') {
      facts.push([key, valueText(key, value), typeof value === 'string' ? value : JSON.stringify(value)]);
    }
  }
  return (
    <section className={css.details} data-part="event-details" aria-label="Selected slice">
      <header>
        <i className="dot" style={{ background: classColor(classes[event.color] ?? 'other') }} />
        <h2 className="clip" title={event.name}>
          {event.short_name}
        </h2>
        <span className={css.actions}>
          <Button
            look="quiet"
            title="Previous along the flow ([)"
            disabled={!flows?.previous.length}
            onClick={() => onEvent(flows!.previous[0]!)}
          >
            <Icon name="left" size={14} />
          </Button>
          <Button
            look="quiet"
            title="Next along the flow (])"
            disabled={!flows?.next.length}
            onClick={() => onEvent(flows!.next[0]!)}
          >
            <Icon name="right" size={14} />
          </Button>
          <Button look="quiet" title="Zoom to it (f)" onClick={onZoom}>
            <Icon name="fit" size={14} />
          </Button>
          <CopyButton label="Copy the name" text={() => event.name} />
          <Button look="quiet" title="Close (Escape)" onClick={onClose}>
            <Icon name="close" size={14} />
          </Button>
        </span>
      </header>
      <p className="dim">
        <Sentence text={event.headline} /> <Sentence text={flows?.headline ?? []} />
      </p>
      <div className={css.links} data-part="event-links">
        {event.operator && <SliceLink label="In operator" to={event.operator} onEvent={onEvent} />}
        {event.launch && <SliceLink label="Launched by" to={event.launch} onEvent={onEvent} />}
        {module && module.path.length > 0 && (
          <span>
            <span className="dim">Module</span> {module.path.join(' › ')}
            {module.backward && ' (backward)'}
          </span>
        )}
        {event.operator_name !== null && (
          <Button look="text" onClick={() => onView('operators', { select: event.operator_name! })}>
            All calls of {event.operator_name}
          </Button>
        )}
        {event.kernel_name !== null && (
          <Button look="text" onClick={() => onView('kernels', { select: event.kernel_name! })}>
            All calls of this kernel
          </Button>
        )}
      </div>
      <dl className={css.facts}>
        {facts.map(([key, value, exact]) => (
          <div key={key}>
            <dt className="clip" title={key}>
              {key}
            </dt>
            <dd className="clip" title={exact ?? value}>
              {value}
            </dd>
          </div>
        ))}
      </dl>
      {flows && flows.edges.length > 0 && (
        <>
          <h3>Links</h3>
          <ul className={css.edges}>
            {flows.edges.slice(0, 40).map(edge => {
              const other = edge.source.event === event.event ? edge.target : edge.source;
              return (
                <li key={`${edge.source.event}-${edge.target.event}-${edge.kind}`}>
                  <span className="dim">
                    {edge.source.event === event.event ? '→' : '←'} {edge.kind}
                  </span>{' '}
                  <Button look="text" className="clip" onClick={() => onEvent(other.event)}>
                    {other.short_name}
                  </Button>{' '}
                  {edge.delay_ns !== null && (
                    <span className="dim">{formatDuration(edge.delay_ns)} later</span>
                  )}
                </li>
              );
            })}
            {flows.total > 40 && <li className="dim">and {formatCount(flows.total - 40)} more</li>}
          </ul>
        </>
      )}
      {event.around.length > 0 && (
        <>
          <h3>Inside</h3>
          <ol className={css.around}>
            {event.around.map(slice => (
              <li key={slice.event}>
                <Button look="text" className="clip" onClick={() => onEvent(slice.event)}>
                  {slice.name}
                </Button>
              </li>
            ))}
          </ol>
        </>
      )}
      <h3>Python stack</h3>
      {event.stack.length > 0 ? (
        <ol className={sourceFrameCss.frames}>
          {event.stack.map((frame, i) => (
            // oxlint-disable-next-line react/no-array-index-key -- recursion repeats a frame
            <li key={i}>
              <SourceFrame text={frame.text} file={frame.file} line={frame.line} />
            </li>
          ))}
        </ol>
      ) : (
        <p className="dim">
          <Sentence text={event.reasons.stack ?? []} />
        </p>
      )}
    </section>
  );
}

/** Numbers that name something rather than count it: their digits stay together. */
const NAMES = /\b(id|idx|number|correlation|device|stream|context|rank|pid|tid|seq|port)\b/i;

function valueText(key: string, value: unknown): string {
  if (typeof value === 'number') {
    const grouped = !NAMES.test(key);
    return Number.isInteger(value)
      ? value.toLocaleString('en-US', { useGrouping: grouped })
      : formatNumber(value, 4);
  }
  return Array.isArray(value) ? listText(value) : typeof value === 'string' ? value : JSON.stringify(value);
}

/** Shapes as 8 × 64 × 32, several beside each other; what an input does not have as a dash. */
function listText(values: readonly unknown[]): string {
  if (values.length > 0 && values.every(each => typeof each === 'number')) {
    return values.join(' × ');
  }
  const parts = values.map(each =>
    Array.isArray(each) ? listText(each) : typeof each === 'string' ? each : JSON.stringify(each),
  );
  return parts.map(part => part || '–').join(', ');
}
