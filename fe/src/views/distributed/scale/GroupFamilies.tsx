// Process groups by what they are for: how much their ranks communicate, and which group waits most.
import type { GroupFamily } from '../../../api/types';
import { formatCount, formatDuration } from '../../../base/format';
import { Button } from '../../../widgets/inputs/Button';
import { Panel } from '../../../widgets/Panel';
import { TransferBar } from '../tables/JobTable';
import css from './scale.module.css';

interface Props {
  families: GroupFamily[];
  /** Open the collectives of a group, longest wait first. */
  onGroup: (group: number) => void;
}

export function GroupFamilies({ families, onGroup }: Props) {
  const most = Math.max(...families.map(each => (each.transfer_ns ?? 0) + (each.waiting_ns ?? 0)), 1);
  return (
    <Panel title="Process groups by family" note="sums over all their ranks and the entire recording">
      <div className={css.scroller}>
        <table className={css.families} data-part="group-families">
          <thead>
            <tr>
              <th>Family</th>
              <th className="num">Groups × size</th>
              <th className="num">Complete</th>
              <th>Collectives</th>
              <th className="num">Matched</th>
              <th>Transfer and waiting</th>
              <th className="num">Transfer</th>
              <th className="num">Waiting</th>
              <th className="num">Exposed</th>
              <th>Longest wait</th>
            </tr>
          </thead>
          <tbody>
            {families.map(each => (
              <tr key={each.label}>
                <td>
                  <b>{each.label}</b>
                </td>
                <td className="num">
                  {formatCount(each.groups)} × {formatCount(each.size)}
                </td>
                <td className="num">{formatCount(each.complete)}</td>
                <td title={each.backends.join(', ')}>{each.names.join(', ')}</td>
                <td className="num">{formatCount(each.collectives)}</td>
                <td className={css.bar}>
                  <TransferBar transfer={each.transfer_ns} waiting={each.waiting_ns} most={most} />
                </td>
                {[each.transfer_ns, each.waiting_ns, each.exposed_ns].map((time, i) => (
                  // oxlint-disable-next-line react/no-array-index-key -- the columns stay where they are
                  <td key={i} className="num">
                    {time === null ? '–' : formatDuration(time)}
                  </td>
                ))}
                <td>
                  {each.slowest_group === null ? (
                    '–'
                  ) : (
                    <Button look="text" onClick={() => onGroup(each.slowest_group!)}>
                      ranks {each.slowest_ranks} · {formatDuration(each.slowest_waiting_ns!)}
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
