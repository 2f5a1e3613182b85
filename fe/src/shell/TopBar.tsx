import { Modal } from '@mantine/core';
import { useState } from 'react';
import type { ReportInfo } from '../api/client';
import type { RunInfo, ViewAnswer, WorkerInfo } from '../api/types';
import { formatBytes, formatCount, formatRatio, plural } from '../base/format';
import { shareLink } from '../base/browser/host';
import { useClient } from '../state/queries';
import { useSelection } from '../state/selection';
import { Button } from '../widgets/inputs/Button';
import { CopyButton } from '../widgets/inputs/CopyButton';
import { Icon, type IconName } from '../widgets/Icon';
import type { Option } from '../widgets/inputs/OptionList';
import { Picker } from '../widgets/inputs/Picker';
import css from './TopBar.module.css';

interface Props {
  runs: RunInfo[];
  run: string | undefined;
  workers: WorkerInfo[];
  answer: ViewAnswer<never> | undefined;
  failed: boolean;
  /** Whether what the address names isn't written yet. */
  awaiting: boolean;
  onHealth: () => void;
}

export function TopBar({ runs, run, workers, answer, failed, awaiting, onHealth }: Props) {
  const { selection, select } = useSelection();
  const { report } = useClient();
  const shownWorker = answer?.worker ?? selection.worker;
  const worker = workers.find(({ name }) => name === shownWorker) ?? workers[0];
  const spans = worker?.spans ?? [];
  const spanIndex = Math.max(
    spans.findIndex(span => span.name === (selection.span ?? answer?.span)),
    0,
  );
  if (runs.length === 0) {
    return <div className={css.top} />;
  }
  return (
    <div className={css.top} role="region" aria-label="Trace selection">
      <span data-picker="r">
        <Picker
          name="Run"
          value={run}
          options={runs.map(runOption)}
          note={runs.length > 1 ? `of ${formatCount(runs.length)}` : undefined}
          onPick={name => select({ run: name })}
        />
      </span>
      {workers.length > 0 && (
        <span data-picker="w">
          <Picker
            name="Worker"
            value={worker?.name}
            options={workers.map(workerOption)}
            note={workers.length > 1 ? `of ${formatCount(workers.length)}` : undefined}
            onPick={name => select({ run, worker: name })}
          />
        </span>
      )}
      {spans.length > 1 && worker && (
        <span className="button spans" title={spans[spanIndex]?.label}>
          <span className="dim">Span</span>
          <Button
            look="bare"
            aria-label="Previous span"
            disabled={spanIndex === 0}
            onClick={() => select({ run, worker: worker.name, span: spans[spanIndex - 1]!.name })}
          >
            <Icon name="left" size={14} />
          </Button>
          {spanIndex + 1} of {spans.length}
          <Button
            look="bare"
            aria-label="Next span"
            disabled={spanIndex === spans.length - 1}
            onClick={() => select({ run, worker: worker.name, span: spans[spanIndex + 1]!.name })}
          >
            <Icon name="right" size={14} />
          </Button>
        </span>
      )}
      <span className="grow" />
      {!awaiting && (
        <HealthBadge state={spans[spanIndex]?.state} answer={answer} failed={failed} onClick={onHealth} />
      )}
      {report ? (
        <AboutReport report={report} />
      ) : (
        <CopyButton text={shareLink} label="Share link" icon="link" showLabel />
      )}
    </div>
  );
}

interface BadgeProps {
  state: WorkerInfo['spans'][number]['state'] | undefined;
  answer: ViewAnswer<never> | undefined;
  failed: boolean;
  onClick: () => void;
}

function HealthBadge({ state, answer, failed, onClick }: BadgeProps) {
  const [kind, icon, text] = healthBadge(state, answer, failed);
  return (
    <Button
      key={text} // a badge of another width is another one: nothing is seen to move
      look="bare"
      className={`badge ${kind}`}
      onClick={onClick}
      title="Trace health: what was skipped or repaired"
    >
      <Icon name={icon} size={12} />
      {text}
    </Button>
  );
}

/** Return the class, icon, and text of the badge. */
function healthBadge(
  state: BadgeProps['state'],
  answer: BadgeProps['answer'],
  failed: boolean,
): [string, IconName, string] {
  if (failed || state?.state === 'failed') {
    return ['bad', 'error', 'Unreadable'];
  }
  // An answer may be of the part that has been read so far.
  const read = state?.state === 'ready' || (answer?.state === 'ready' && answer.loading === 0);
  const progress = answer?.state === 'loading' ? answer.progress : state?.progress;
  if (!read && progress?.bytes_total) {
    return ['neutral', 'clock', `Reading, ${formatRatio(progress.bytes_done / progress.bytes_total)}`];
  }
  if (!read || !state?.health) {
    return read ? ['neutral', 'check', 'Read'] : ['neutral', 'clock', 'Reading'];
  }
  const { error, warning, info } = state.health;
  if (error > 0) {
    return ['bad', 'error', `Damaged: ${plural(error + warning, 'issue')}`];
  }
  if (warning > 0) {
    return ['warn', 'warning', plural(warning + info, 'issue')];
  }
  return info > 0 ? ['ok', 'check', `Complete, ${plural(info, 'note')}`] : ['ok', 'check', 'Trace complete'];
}

function runOption(run: RunInfo): Option {
  const { failed, loading, ready, waiting } = run.files;
  const total = failed + loading + ready + waiting;
  const [status, icon, text]: [string, IconName, string] =
    failed > 0
      ? ['error', 'error', failed === total ? 'unreadable' : `${failed} of ${total} files unreadable`]
      : loading > 0
        ? ['info', 'clock', 'reading']
        : ready > 0
          ? ['ok', 'check', 'read']
          : ['dim', 'clock', 'not read yet'];
  return {
    value: run.name,
    label: runLabel(run),
    mark: (
      <span className={`status ${status}`} title={text}>
        <Icon name={icon} size={14} />
      </span>
    ),
    detail: `${run.workers > 0 ? plural(run.workers, 'worker') : plural(run.dumps, 'dump')}${run.spans > 1 ? `, ${run.spans} spans` : ''} · ${formatBytes(run.bytes)}`,
  };
}

function workerOption(worker: WorkerInfo): Option {
  const bytes = worker.spans.reduce((sum, span) => sum + span.bytes, 0);
  const rank = worker.rank === null ? '' : `rank ${worker.rank} · `;
  return { value: worker.name, label: worker.name, detail: `${rank}${formatBytes(bytes)}` };
}

/** When a report was made, from what, and what it leaves out. */
function AboutReport({ report }: { report: ReportInfo }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <Icon name="info" size={14} /> About this report
      </Button>
      <Modal
        opened={open}
        onClose={() => setOpen(false)}
        title="About this report"
        size={560}
        centered
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <p>
          Created on {report.made} by torch-tb-profiler {report.version} from{' '}
          <span className="mono">{report.root}</span>. It works offline with the data it contains; run{' '}
          <span className="mono">{report.command}</span> to see everything.
        </p>
        <h3>{plural(report.left_out.length, 'item')} left out</h3>
        <ul className={css.leftOut}>
          {report.left_out.map(text => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      </Modal>
    </>
  );
}

/** Return what a run is called in the picker: the name that a tracker recorded, before that of its folder. */
export const runLabel = ({ name, tracker_name }: Pick<RunInfo, 'name' | 'tracker_name'>): string =>
  tracker_name ? `${tracker_name} (${name})` : name;
