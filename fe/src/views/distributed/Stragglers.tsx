// Which ranks are stragglers, and what they do before they arrive.
import { useState } from 'react';
import type { DistributedPayload, StragglerActivityRow, StragglerRow } from '../../api/types';
import { CATEGORY_TITLE, type Category } from '../../base/category';
import { formatCount, formatDuration, formatLimit, formatRatio, plural } from '../../base/format';
import { capitalize, plainText } from '../../base/text';
import { Button } from '../../widgets/inputs/Button';
import { Choice } from '../../widgets/inputs/Choice';
import { Name, Names } from '../../widgets/Name';
import { Panel } from '../../widgets/Panel';
import { Sentence } from '../../widgets/Sentence';
import { Term } from '../../widgets/Term';
import { groupByHost, isLarge, isHostRow, rankName, rankNoun, type HostRow } from './select';
import css from './Stragglers.module.css';
import pageCss from './index.module.css';

/** Rows that are listed until all are asked for. */
const MAX_ROWS = 8;
/** Ranks up to which what one of them does stands below them, not beside. */
const MAX_FEW_ROWS = 5;
/** Most names of a rank’s activity that are listed. */
const MAX_NAMES = 8;

const CAUSES: Record<NonNullable<StragglerRow['cause']>, string> = {
  host: 'Host',
  data_loading: 'Data loading',
  more_work: 'More work',
  longer_kernels: 'Longer kernels',
  slower_device: 'Slower device',
  slower_link: 'Slower link',
  other: 'Other',
  held_up: 'Held up',
};

interface Props {
  payload: DistributedPayload;
  onWorker: (worker: string) => void;
  onLate: (worker: string) => void;
  /** Find a name on the timeline of a rank; `frames` shows Python frames as well. */
  onName: (worker: string, name: string, frames: boolean) => void;
}

export function Stragglers({ payload, onWorker, onLate, onName }: Props) {
  const [picked, setPicked] = useState<string>();
  const [all, setAll] = useState(false);
  const { stragglers, meanwhile: activity } = payload;
  const listed = Math.min(all ? Infinity : MAX_ROWS, stragglers.length);
  // The payload lists the costliest ranks of a large job; while ranks are read, not all of them can be compared.
  const compared = payload.spreads.find(each => each.measure === 'cost')?.ranks ?? stragglers.length;
  const most = Math.max(...stragglers.map(row => row.cost_ns), payload.verdict.cost_ns ?? 0, 1);
  const per = payload.steps.length > 1 ? ` per ${payload.step_noun}` : '';
  const shown = activity.find(row => row.worker === picked) ?? activity[0];
  const rows = groupByHost(payload, listed);
  const few = rows.length <= MAX_FEW_ROWS;
  return (
    <div className={`${css.grid} ${few ? css.few : ''}`}>
      <Panel
        title={
          <>
            Stragglers <Term id="straggler" />
          </>
        }
        note={compared > listed ? `costliest ${formatCount(listed)} of ${formatCount(compared)}` : undefined}
        actions={
          isLarge(payload) &&
          stragglers.length > MAX_ROWS && (
            <Button look="quiet" onClick={() => setAll(!all)}>
              {all ? `Only ${MAX_ROWS}` : `Show ${stragglers.length}`}
            </Button>
          )
        }
      >
        {stragglers.length === 0 ? (
          <p className="dim">{capitalize(plainText(payload.reasons.stragglers ?? []))}.</p>
        ) : (
          <ol className={`${css.list} ${all ? css.all : ''}`}>
            <li className={`${css.row} dim`} data-part="straggler-row">
              <span>{capitalize(rankNoun(payload))}</span>
              <span className="num">arrives last</span>
              <span />
              <span className="num">costs{per}</span>
              <span className="num">waits{per}</span>
              <span>cause</span>
            </li>
            {rows.map(row =>
              isHostRow(row) ? (
                <Node key={`node ${row.host}`} row={row} most={most} />
              ) : (
                <Row
                  key={row.worker}
                  row={row}
                  most={most}
                  chosen={row.worker === shown?.worker}
                  onPick={
                    activity.length > 1 && activity.some(each => each.worker === row.worker)
                      ? () => setPicked(row.worker)
                      : undefined
                  }
                  onLate={() => onLate(row.worker)}
                />
              ),
            )}
          </ol>
        )}
      </Panel>
      {shown && (
        <Activity
          key={shown.worker}
          row={shown}
          // Beside the ranks, as tall as they are: its summary and its legend take two rows.
          names={few ? MAX_NAMES : Math.min(MAX_NAMES, rows.length - 1)}
          noun={rankNoun(payload)}
          onWorker={() => onWorker(shown.worker)}
          onName={(name, frames) => onName(shown.worker, name, frames)}
        />
      )}
    </div>
  );
}

function Node({ row, most }: { row: HostRow; most: number }) {
  const what = row.together ? 'Cost of all its ranks together' : 'Cost of its costliest rank';
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
      <span className="dim clip">{row.together ? 'all its ranks' : 'costliest rank'}</span>
    </li>
  );
}

interface RowProps {
  row: StragglerRow;
  most: number;
  chosen: boolean;
  /** Show what the rank does meanwhile, if there is another to pick; of most that are not late nothing is known. */
  onPick: (() => void) | undefined;
  onLate: () => void;
}

function Row({ row, most, chosen, onPick, onLate }: RowProps) {
  return (
    <li
      className={`${css.row} ${chosen ? css.selected : ''}`}
      data-part="straggler-row"
      aria-current={chosen || undefined}
    >
      {onPick ? (
        <Button look="text" className="clip" title={row.worker} onClick={onPick}>
          {rankName(row.rank, row.worker)}
        </Button>
      ) : (
        <span className="clip" title={row.worker}>
          {rankName(row.rank, row.worker)}
        </span>
      )}
      <Button
        look="text"
        className="num"
        title={`Arrives last at ${formatCount(row.last)} of ${plural(row.collectives, 'collective')}; click to list them`}
        onClick={onLate}
      >
        {row.last_ratio === null ? '–' : formatRatio(row.last_ratio)}
      </Button>
      <span className={css.bar}>
        <i style={{ width: `${(row.cost_ns / most) * 100}%` }} />
      </span>
      <span className="num">
        {row.cost_is_limit ? `≤ ${formatLimit(row.cost_ns)}` : formatDuration(row.cost_ns)}
      </span>
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

type TimeKind = 'host' | 'frames' | 'kernels' | 'categories';

interface ActivityProps {
  row: StragglerActivityRow;
  /** Names shown at most. */
  names: number;
  noun: string;
  onWorker: () => void;
  onName: (name: string, frames: boolean) => void;
}

function Activity({ row, names, noun, onWorker, onName }: ActivityProps) {
  const [by, setBy] = useState<TimeKind>('host');
  const shares = row[by].slice(0, names);
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
  const nameOf = (share: (typeof shares)[number]): string =>
    by === 'categories' ? (CATEGORY_TITLE[share.name as Category] ?? share.name) : share.short_name;
  return (
    <Panel
      title={
        <>
          What {rankName(row.rank, row.worker)} does before it arrives <Term id="straggler_activity" />
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
      <Names of={shares.map(nameOf)}>
        <ol className={css.whileList}>
          {shares.map(share => {
            return (
              <li key={share.name} className={css.whileRow} data-part="while-row">
                <Button
                  look="text"
                  className="clip"
                  title={
                    by === 'categories'
                      ? `Open the overview of ${row.worker}`
                      : `Find ${share.name} on the timeline`
                  }
                  onClick={() => (by === 'categories' ? onWorker() : onName(share.name, by === 'frames'))}
                >
                  <Name text={nameOf(share)} title="" />
                </Button>
                <span className={css.pair}>
                  <i className={css.late} style={{ width: `${(share.time_ns / most) * 100}%` }} />
                  <i className={css.median} style={{ width: `${((share.median_ns ?? 0) / most) * 100}%` }} />
                </span>
                <span className="num">{formatDuration(share.time_ns)}</span>
                <span
                  className="num dim"
                  title={
                    share.median_ns === null
                      ? `Less than the largest activity of the median ${noun}`
                      : undefined
                  }
                >
                  {share.median_ns === null ? 'less' : formatDuration(share.median_ns)}
                </span>
              </li>
            );
          })}
        </ol>
      </Names>
      <p className={`dim ${pageCss.legend}`}>
        <i className={css.late} /> this {noun} <i className={css.median} /> the median {noun}
      </p>
    </Panel>
  );
}
