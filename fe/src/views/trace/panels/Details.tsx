// Details of the selected slice.
import type { OriginEvent, TraceEvent, TraceFlows, TraceModule } from '../../../api/types';
import {
  exactDuration,
  formatBytes,
  formatCount,
  formatDuration,
  formatNumber,
  formatRate,
  formatRatio,
} from '../../../base/format';
import { useStepWords } from '../../../state/steps';
import { classColor } from '../../../timeline/draw/colors';
import { Icon } from '../../../widgets/Icon';
import { Sentence } from '../../../widgets/Sentence';
import { SourceFrame } from '../../../widgets/SourceFrame';
import sourceFrameCss from '../../../widgets/SourceFrame.module.css';
import { Button } from '../../../widgets/inputs/Button';
import { CopyButton } from '../../../widgets/inputs/CopyButton';
import css from './Details.module.css';
import { OriginCard } from './OriginCard';
import { PanelHead, SliceLink } from './PanelHead';

interface Props {
  event: TraceEvent;
  flows: TraceFlows | undefined;
  module: TraceModule | undefined;
  origin: OriginEvent | undefined;
  classes: readonly string[];
  time: (ns: number) => string;
  onEvent: (event: number) => void;
  onView: (view: string, params: Record<string, string>) => void;
  onZoom: () => void;
  onClose: () => void;
}

export function Details({
  event,
  flows,
  module,
  origin,
  classes,
  time,
  onEvent,
  onView,
  onZoom,
  onClose,
}: Props) {
  const say = useStepWords();
  const { curated, all } = facts(event.args);
  const ownFacts: Fact[] = [];
  if (event.duration_ns !== null) {
    ownFacts.push(['Duration', formatDuration(event.duration_ns), exactDuration(event.duration_ns)]);
  }
  if (event.self_ns !== null && event.self_ns !== event.duration_ns) {
    ownFacts.push(['Self time', formatDuration(event.self_ns), exactDuration(event.self_ns)]);
  }
  const start = event.start_ns === null ? 'not recorded' : time(event.start_ns);
  ownFacts.push(['Start', start, start]);
  if (event.step !== null) {
    ownFacts.push([say('Step'), event.step, event.step]);
  }
  const category = event.category || 'none';
  ownFacts.push(['Category', category, category], ['Thread', event.thread, event.thread]);
  return (
    <section className={css.details} data-part="event-details" aria-label="Selected slice">
      <PanelHead
        color={classColor(classes[event.color] ?? 'other')}
        title={event.short_name}
        fullTitle={event.name}
        actions={
          <>
            <Button
              look="quiet"
              title="Previous slice along the flow ([)"
              disabled={!flows?.previous.length}
              onClick={() => onEvent(flows!.previous[0]!)}
            >
              <Icon name="left" size={14} />
            </Button>
            <Button
              look="quiet"
              title="Next slice along the flow (])"
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
      {origin?.has_origin && <OriginCard origin={origin} />}
      <Facts facts={[...ownFacts, ...curated]} />
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
              // An operator also lists the links of the calls nested in it.
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

type Fact = readonly [title: string, value: string, exact: string];

type FormatNumber = (value: number) => string;

const percent: FormatNumber = value => formatRatio(value / 100);
const KNOWN_ARGS: Record<string, readonly [title: string, format?: FormatNumber]> = {
  'shared memory': ['Shared memory', formatBytes],
  bytes: ['Size', formatBytes],
  grid: ['Grid'],
  block: ['Block'],
  'registers per thread': ['Registers per thread'],
  'blocks per sm': ['Blocks per SM'],
  'warps per sm': ['Warps per SM'],
  'est. achieved occupancy %': ['Est. achieved occupancy', percent],
  'memory bandwidth (gb/s)': ['Bandwidth', value => formatRate(value * 1e9)],
  'input dims': ['Input shapes'],
  'input type': ['Input types'],
  'concrete inputs': ['Inputs'],
  'in msg nelems': ['Elements in'],
  'out msg nelems': ['Elements out'],
};

/** Arguments that only link events or are shown elsewhere. */
const OMITTED_ARGS =
  /^(call stack|external id|correlation|context|queued|cbid|ev idx|record function id|fwd thread id|sequence number|python (id|parent id|module id|thread)|input strides|device|stream|kernel_(file|hash|kwargs)|seq)$/i;

/** The text of a list whose items are all missing. */
const NOTHING = /^[–, ]+$/;

/** Return the facts of a slice's arguments: `curated` with titles and units, `all` as recorded. */
function facts(args: Readonly<Record<string, unknown>>): { curated: Fact[]; all: Fact[] } {
  const all = Object.entries(args).filter(([key]) => key !== 'Call stack');
  const exact = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
  return {
    curated: all
      .filter(([key, value]) => !OMITTED_ARGS.test(key) && !NOTHING.test(valueText(key, value)))
      .map(([key, value]) => {
        const [title, format] = KNOWN_ARGS[key.toLowerCase()] ?? [key];
        return [
          title,
          format && typeof value === 'number' ? format(value) : valueText(key, value),
          exact(value),
        ];
      }),
    all: all.map(([key, value]) => [key, valueText(key, value), exact(value)]),
  };
}

/** Arguments that are identifiers: written without separators. */
const IDENTIFIERS = /\b(id|idx|number|correlation|device|stream|context|rank|pid|tid|seq|port)\b/i;

function valueText(key: string, value: unknown): string {
  if (typeof value === 'number') {
    const digits = IDENTIFIERS.test(key) ? String(value) : formatCount(value);
    return Number.isInteger(value) ? digits : formatNumber(value, 4);
  }
  return Array.isArray(value) ? listText(value) : typeof value === 'string' ? value : JSON.stringify(value);
}

/** Format shapes as 8 × 64 × 32, separated by commas; a missing one is a dash. */
function listText(values: readonly unknown[]): string {
  if (values.length > 0 && values.every(each => typeof each === 'number')) {
    return values.join(' × ');
  }
  const parts = values.map(each =>
    Array.isArray(each) ? listText(each) : typeof each === 'string' ? each : JSON.stringify(each),
  );
  return parts.map(part => part || '–').join(', ');
}
