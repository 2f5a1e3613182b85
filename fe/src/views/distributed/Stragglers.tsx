// Who arrives last, and what that rank was doing while the others waited.
import { useState } from 'react';
import type { Distributed, Meanwhile, Straggler } from '../../api/types';
import { CATEGORY_TITLE, type Category } from '../../base/category';
import { formatCount, formatDuration, formatRatio, plural } from '../../base/format';
import { capitalize, plainText } from '../../base/text';
import { Button } from '../../widgets/inputs/Button';
import { Choice } from '../../widgets/inputs/Choice';
import { Panel } from '../../widgets/Panel';
import { Sentence } from '../../widgets/Sentence';
import { Term } from '../../widgets/Term';
import { byNode, isLarge, isNode, rankName, rowNoun, type NodeRow } from './select';
import css from './Stragglers.module.css';
import pageCss from './index.module.css';

const LISTED = 8;
const NAMES = 8;

const CAUSES: Record<NonNullable<Straggler['cause']>, string> = {
  host: 'Host',
  data_loading: 'Data loading',
  more_work: 'More work',
  slower_device: 'Slower device',
  slower_link: 'Slower link',
  other: 'Other',
  held_up: 'Held up',
};

interface Props {
  payload: Distributed;
  onWorker: (worker: string) => void;
  onLate: (worker: string) => void;
  /** Finds a name on the timeline of a rank, Python frames unfolded if it is one of them. */
  onName: (worker: string, name: string, frames: boolean) => void;
}

export function Stragglers({ payload, onWorker, onLate, onName }: Props) {
  const [picked, setPicked] = useState<string>();
  const [all, setAll] = useState(false);
  const listed = all ? payload.stragglers.length : LISTED;
  const { stragglers, meanwhile } = payload;
  const most = Math.max(...stragglers.map(row => row.cost_ns), payload.verdict.cost_ns ?? 0, 1);
  const per = payload.steps.length > 1 ? ' per step' : '';
  const shown = meanwhile.find(row => row.worker === picked) ?? meanwhile[0];
  return (
    <div className={css.grid}>
      <Panel
        title={
          <>
            Who keeps the others waiting <Term id="straggler" />
          </>
        }
        note={
          stragglers.length > listed || isLarge(payload)
            ? `the ${listed} that cost most of ${formatCount(isLarge(payload) ? payload.rank_count : stragglers.length)}`
            : undefined
        }
        actions={
          isLarge(payload) &&
          stragglers.length > LISTED && (
            <Button look="quiet" onClick={() => setAll(!all)}>
              {all ? `Only ${LISTED}` : `Show ${stragglers.length}`}
            </Button>
          )
        }
      >
        {stragglers.length === 0 ? (
          <p className="dim">{capitalize(plainText(payload.reasons.stragglers ?? []))}.</p>
        ) : (
          <ol className={`${css.list} ${all ? css.all : ''}`}>
            <li className={`${css.row} dim`} data-part="straggler-row">
              <span>{capitalize(rowNoun(payload))}</span>
              <span className="num">last in</span>
              <span />
              <span className="num">costs{per}</span>
              <span className="num">waits{per}</span>
              <span>why</span>
            </li>
            {byNode(payload, listed).map(row =>
              isNode(row) ? (
                <Node key={`node ${row.host}`} row={row} most={most} />
              ) : (
                <Row
                  key={row.worker}
                  row={row}
                  most={most}
                  chosen={row.worker === shown?.worker}
                  onPick={() => setPicked(row.worker)}
                  onLate={() => onLate(row.worker)}
                />
              ),
            )}
          </ol>
        )}
      </Panel>
      {shown && (
        <While
          key={shown.worker}
          row={shown}
          noun={rowNoun(payload)}
          onWorker={() => onWorker(shown.worker)}
          onName={(name, frames) => onName(shown.worker, name, frames)}
        />
      )}
    </div>
  );
}

function Node({ row, most }: { row: NodeRow; most: number }) {
  const what = row.together ? 'All its ranks together' : 'Of its ranks, the one that costs most';
  return (
    <li className={`${css.row} ${css.node}`} data-part="node-row">
      <span className={`clip ${css.host}`} title={row.host}>
        {row.host} <span className="dim">{plural(row.ranks, 'rank')}</span>
      </span>
      <span className={css.bar}>
        <i style={{ width: `${(row.cost_ns / most) * 100}%` }} />
      </span>
      <span className="num" title={what}>
        {formatDuration(row.cost_ns)}
      </span>
      <span />
      <span className="dim clip">{row.together ? 'all together' : 'at most, of one'}</span>
    </li>
  );
}

interface RowProps {
  row: Straggler;
  most: number;
  chosen: boolean;
  onPick: () => void;
  onLate: () => void;
}

function Row({ row, most, chosen, onPick, onLate }: RowProps) {
  return (
    <li
      className={`${css.row} ${chosen ? css.selected : ''}`}
      data-part="straggler-row"
      aria-current={chosen || undefined}
    >
      <Button look="text" className="clip" title={row.worker} onClick={onPick}>
        {rankName(row.rank, row.worker)}
      </Button>
      <Button
        look="text"
        className="num"
        title={`Last in ${formatCount(row.last)} of ${plural(row.collectives, 'collective')}: show them`}
        onClick={onLate}
      >
        {row.last_ratio === null ? '–' : formatRatio(row.last_ratio)}
      </Button>
      <span className={css.bar}>
        <i style={{ width: `${(row.cost_ns / most) * 100}%` }} />
      </span>
      <span className="num">{formatDuration(row.cost_ns)}</span>
      <span className="num dim">{formatDuration(row.waiting_per_step_ns)}</span>
      <span
        className={`clip ${css.why}`}
        title={row.why.map(phrase => phrase.text).join('')}
        data-part="straggler-why"
      >
        {row.cause && <b className={css.cause}>{CAUSES[row.cause]}</b>}
        <Sentence text={row.why} />
      </span>
    </li>
  );
}

type Names = 'host' | 'frames' | 'kernels' | 'categories';

interface WhileProps {
  row: Meanwhile;
  noun: string;
  onWorker: () => void;
  onName: (name: string, frames: boolean) => void;
}

function While({ row, noun, onWorker, onName }: WhileProps) {
  const [by, setBy] = useState<Names>('host');
  const shares = row[by].slice(0, NAMES);
  const most = Math.max(...shares.flatMap(share => [share.time_ns, share.median_ns ?? 0]), 1);
  const options = (['host', 'frames', 'kernels', 'categories'] as const)
    .filter(name => row[name].length > 0)
    .map(
      name =>
        [
          name,
          { host: 'Host', frames: 'Python', kernels: 'Device', categories: 'Categories' }[name],
        ] as const,
    );
  return (
    <Panel
      title={
        <>
          What {rankName(row.rank, row.worker)} did meanwhile <Term id="straggler_activity" />
        </>
      }
      actions={
        <>
          <Choice name="Time of" value={by} options={options} onPick={setBy} />
          <Button look="quiet" onClick={onWorker}>
            Open overview
          </Button>
        </>
      }
    >
      <p className="dim">
        <Sentence text={row.summary} />
      </p>
      <ol className={css.whileList}>
        {shares.map(share => {
          const name =
            by === 'categories' ? (CATEGORY_TITLE[share.name as Category] ?? share.name) : share.short_name;
          return (
            <li key={share.name} className={css.whileRow} data-part="while-row">
              <Button
                look="text"
                className="clip"
                title={by === 'categories' ? `Open the overview of ${row.worker}` : `Find ${share.name}`}
                onClick={() => (by === 'categories' ? onWorker() : onName(share.name, by === 'frames'))}
              >
                {name}
              </Button>
              <span className={css.pair}>
                <i className={css.late} style={{ width: `${(share.time_ns / most) * 100}%` }} />
                <i className={css.median} style={{ width: `${((share.median_ns ?? 0) / most) * 100}%` }} />
              </span>
              <span className="num">{formatDuration(share.time_ns)}</span>
              <span
                className="num dim"
                title={share.median_ns === null ? 'Less than its largest ones.' : undefined}
              >
                {share.median_ns === null ? 'less' : formatDuration(share.median_ns)}
              </span>
            </li>
          );
        })}
      </ol>
      <p className={`dim ${pageCss.legend}`}>
        <i className={css.late} /> this {noun} <i className={css.median} /> the median {noun}
      </p>
    </Panel>
  );
}
