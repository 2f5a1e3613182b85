// The last collectives of the group of the verdict, by rank; the call that a rank never made is drawn as absent.
import { useState } from 'react';
import type { HangCallRow, HangsPayload } from '../../api/types';
import { formatCount, plural } from '../../base/format';
import { Button } from '../../widgets/inputs/Button';
import { Panel } from '../../widgets/Panel';
import { formatRanks, MAX_ROWS, membersOf, pictureRows, type CellState, type PictureRow } from './select';
import css from './Calls.module.css';

const WORDS: Record<CellState, string> = {
  finished: '',
  waiting: 'waits',
  pending: 'queued',
  missing: 'absent',
  different: 'other',
  unseen: 'no dump',
  unknown: 'lost',
};

const MEANING: Record<CellState, string> = {
  finished: 'finished',
  waiting: 'waiting',
  pending: 'queued behind it',
  missing: 'never called',
  different: 'called something else',
  unseen: 'no readable dump',
  unknown: 'overwritten in the recorder',
};

export function Calls({ payload }: { payload: HangsPayload }) {
  const [shown, setShown] = useState<{ call: HangCallRow; row: PictureRow } | null>(null);
  const { calls, verdict } = payload;
  const members = membersOf(payload);
  const rows = pictureRows(calls, members, verdict.culprit_ranks).slice(0, MAX_ROWS);
  if (calls.length === 0) {
    return (
      <Panel title="Collectives">
        <p className="dim">
          {payload.ranks.every(rank => rank.state !== 'ready')
            ? 'No dump can be read; the table of ranks says why.'
            : verdict.p2p_seq_id !== null
              ? 'This group has only sends and receives; the table below shows which rank is in which.'
              : payload.groups.some(each => each.last_finished !== null || each.first_pending !== null)
                ? 'No collective of this group is in the dumps.'
                : 'The dumps contain no collectives.'}
        </p>
      </Panel>
    );
  }
  const states = new Set(rows.flatMap(row => row.cells));
  const group = payload.groups.find(({ group: name }) => name === calls[0]!.group);
  const title = `Group ${group?.group_desc || group?.group || ''}, last ${plural(calls.length, 'collective')}`;
  return (
    <Panel
      title={title}
      note={
        members.length > MAX_ROWS
          ? 'ranks with the same calls share a row'
          : 'by rank; click a cell for its call'
      }
      className={css.panel}
    >
      <p className={css.legend}>
        {(Object.keys(MEANING) as CellState[])
          .filter(state => states.has(state))
          .map(state => (
            <span key={state}>
              <i className={css[state]} />
              {MEANING[state]}
            </span>
          ))}
      </p>
      <div className={css.scroll}>
        <table className={css.calls} aria-label={title}>
          <thead>
            <tr>
              <th scope="col">Rank</th>
              {calls.map(call => (
                <th key={call.collective_seq_id} scope="col" title={call.profiling_name}>
                  {formatCount(call.collective_seq_id)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(row => (
              <tr key={row.ranks[0]}>
                <th
                  scope="row"
                  className={row.culprit ? css.culprit : undefined}
                  title={formatRanks(row.ranks, 40)}
                >
                  {row.ranks.length === 1 ? `rank ${row.ranks[0]}` : plural(row.ranks.length, 'rank')}
                </th>
                {row.cells.map((state, i) => (
                  <td key={calls[i]!.collective_seq_id}>
                    <Button
                      look="bare"
                      className={`${css.cell} ${css[state]}`}
                      aria-label={`${calls[i]!.profiling_name} ${calls[i]!.collective_seq_id}, ${MEANING[state]}`}
                      onClick={() => setShown({ call: calls[i]!, row })}
                    >
                      {WORDS[state]}
                    </Button>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown && <Detail call={shown.call} row={shown.row} />}
    </Panel>
  );
}

function Detail({ call, row }: { call: HangCallRow; row: PictureRow }) {
  const place = call.different.indexOf(row.ranks[0]!);
  const name = place < 0 ? call.profiling_name : call.different_names[place]!;
  return (
    <p className={css.detail} role="status">
      <strong>
        {name} {formatCount(call.collective_seq_id)}
      </strong>
      {call.elements && ` · ${call.elements.map(formatCount).join(' + ')} elements`}
      {call.waiting.length > 0 && ` · waiting: ${formatRanks(call.waiting)}`}
      {call.missing.length > 0 && ` · never called by ${formatRanks(call.missing)}`}
      {call.different.length > 0 && ` · something else on ${formatRanks(call.different)}`}
    </p>
  );
}
