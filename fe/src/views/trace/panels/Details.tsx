// Everything of the selected event.
import type { TraceEvent, TraceFlows, TraceModule } from '../../../api/types';
import { exactDuration, formatCount, formatDuration } from '../../../base/format';
import { classColor } from '../../../timeline/draw/colors';
import { Button } from '../../../widgets/inputs/Button';
import { CopyButton } from '../../../widgets/inputs/CopyButton';
import { Icon } from '../../../widgets/Icon';
import { Sentence } from '../../../widgets/Sentence';
import { SourceFrame } from '../../../widgets/SourceFrame';
import { facts, type Fact } from './facts';
import { PanelHead } from './PanelHead';
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
  const { curated, all } = facts(event.args);
  const own: Fact[] = [];
  if (event.duration_ns !== null) {
    own.push(['Duration', formatDuration(event.duration_ns), exactDuration(event.duration_ns)]);
  }
  if (event.self_ns !== null && event.self_ns !== event.duration_ns) {
    own.push(['Self time', formatDuration(event.self_ns), exactDuration(event.self_ns)]);
  }
  const start = event.start_ns === null ? 'not recorded' : time(event.start_ns);
  own.push(['Start', start, start]);
  if (event.step !== null) {
    own.push(['Step', event.step, event.step]);
  }
  const category = event.category || 'none';
  own.push(['Category', category, category], ['Thread', event.thread, event.thread]);
  return (
    <section className={css.details} data-part="event-details" aria-label="Selected slice">
      <PanelHead
        color={classColor(classes[event.color] ?? 'other')}
        title={event.short_name}
        whole={event.name}
        actions={
          <>
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
            <CopyButton label="Copy the name" text={() => event.name} />
          </>
        }
        onZoom={onZoom}
        onClose={onClose}
      />
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
      <Facts facts={[...own, ...curated]} />
      {all.length > 0 && (
        <details data-part="all-arguments">
          <summary>All arguments, as recorded</summary>
          <Facts facts={all} />
        </details>
      )}
      {flows && flows.edges.length > 0 && (
        <>
          <h3>Links</h3>
          <ul className={css.edges}>
            {flows.edges.slice(0, 40).map(edge => {
              const before = edge.target.event === event.event;
              const other = before ? edge.source : edge.target;
              // Of an operator the links of the calls inside it are listed, too.
              const from = before || edge.source.event === event.event ? null : edge.source;
              return (
                <li key={`${edge.source.event}-${edge.target.event}-${edge.kind}`}>
                  <span className="dim">
                    {before ? '←' : '→'} {edge.kind}
                  </span>{' '}
                  <Button look="text" className="clip" onClick={() => onEvent(other.event)}>
                    {other.short_name}
                  </Button>{' '}
                  {edge.delay_ns !== null && (
                    <span className="dim">
                      {formatDuration(edge.delay_ns)}{' '}
                      {from ? `after ${from.short_name}` : before ? 'before' : 'later'}
                    </span>
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

function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className={css.facts}>
      {facts.map(([title, value, exact]) => (
        <div key={title}>
          <dt className="clip" title={title}>
            {title}
          </dt>
          <dd className="clip" title={exact}>
            {value}
          </dd>
        </div>
      ))}
    </dl>
  );
}
