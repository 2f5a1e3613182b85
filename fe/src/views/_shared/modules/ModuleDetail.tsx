import { useState } from 'react';
import type { ModuleInstances, ModuleRow } from '../../../api/types';
import { formatDuration, formatRatio, plural } from '../../../base/format';
import { useView } from '../../../state/queries';
import { useSelection } from '../../../state/selection';
import { Button } from '../../../widgets/inputs/Button';
import { Icon } from '../../../widgets/Icon';
import { Panel } from '../../../widgets/Panel';
import { timelineTarget } from './select';
import css from './ModuleDetail.module.css';

interface Props {
  /** "modules" or "lightning": the tab whose part lists the calls. */
  tab: string;
  path: ModuleRow[];
  hasDevice: boolean;
  onPlace: (place: number | undefined) => void;
}

/** Calls that are listed at first, and added by each click. */
const PAGE = 50;

/** One module: its times, its calls, and links to them. */
export function ModuleDetail({ tab, path, hasDevice, onPlace }: Props) {
  const { selection, select } = useSelection();
  const [limit, setLimit] = useState(PAGE);
  const row = path[path.length - 1]!;
  const { run, worker, span } = selection;
  const answer = useView<ModuleInstances>(
    `${tab}/instances`,
    { run, worker, span },
    { place: String(row.place), limit: String(limit) },
  );
  const calls = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const show = (event: number) => select(timelineTarget(event, tab === 'modules'));
  return (
    <Panel
      className={css.detail}
      title={<span className="mono">{row.name}</span>}
      actions={
        <Button look="quiet" title="Close" aria-label="Close" onClick={() => onPlace(undefined)}>
          <Icon name="close" size={14} />
        </Button>
      }
    >
      <p className={css.path}>
        {path.slice(0, -1).map(above => (
          <span key={above.place}>
            <Button look="link" onClick={() => onPlace(above.place)}>
              {above.name}
            </Button>{' '}
            ›{' '}
          </span>
        ))}
        <span className="dim">{row.class_name}</span>
      </p>
      <p className={css.links}>
        {row.event !== null && (
          <Button look="primary" onClick={() => show(row.event!)}>
            <Icon name="timeline" size={14} /> Show on timeline
          </Button>
        )}
        {row.operators !== null && row.operators > 0 && (
          <Button
            onClick={() =>
              select({
                view: 'operators',
                params: { group_by: 'module', q: path.map(place => place.name).join(' > ') },
              })
            }
          >
            <Icon name="table" size={14} /> {plural(row.operators, 'operator')}
          </Button>
        )}
      </p>
      <dl className={css.figures}>
        {hasDevice && (
          <>
            <Figure
              name="Device, forward"
              total={row.forward_device_total_ns}
              self={row.forward_device_self_ns}
            />
            <Figure
              name="Device, backward"
              total={row.backward_device_total_ns}
              self={row.backward_device_self_ns}
            />
          </>
        )}
        {row.host_total_ns !== null && (
          <Figure name="Host, forward" total={row.host_total_ns} self={row.host_self_ns} />
        )}
        {row.backward_host_total_ns !== null && (
          <Figure name="Host, backward" total={row.backward_host_total_ns} self={row.backward_host_self_ns} />
        )}
      </dl>
      {row.host_share !== null && (
        <p className={css.note}>
          {formatRatio(row.host_share)} of the model’s host time
          {row.device_share !== null && `, ${formatRatio(row.device_share)} of all device time`}
        </p>
      )}
      <h3>{calls ? plural(calls.total, 'call') : 'Calls'}</h3>
      {answer.error && <p className="status error">{answer.error.message}</p>}
      {calls?.total === 0 && (
        <p className="dim">
          {row.host_total_ns === null
            ? 'A graph replayed this module: the host didn’t call it.'
            : 'Only the operators of this module are recorded, not its calls.'}
        </p>
      )}
      {calls && calls.total > 0 && (
        <ul className={css.calls} aria-label="Calls, longest first">
          {calls.rows.map(call => (
            <li key={call.event}>
              <Button look="link" onClick={() => show(call.event)} title="Show on timeline">
                at {formatDuration(call.start_ns)}
              </Button>
              {call.recomputed && <span className="dim">recomputed</span>}
              <i className="grow" />
              <span className="num" title="On the host">
                {formatDuration(call.duration_ns)}
              </span>
              {hasDevice && (
                <span className="num dim" title="Device work launched in it">
                  {formatDuration(call.device_ns)}
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      {calls && calls.rows.length < calls.total && (
        <Button onClick={() => setLimit(limit + PAGE)}>Show more of {plural(calls.total, 'call')}</Button>
      )}
    </Panel>
  );
}

function Figure({ name, total, self }: { name: string; total: number; self: number | null }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <strong>{formatDuration(total)}</strong>{' '}
        {self !== null && <span className="dim">self {formatDuration(self)}</span>}
      </dd>
    </div>
  );
}
