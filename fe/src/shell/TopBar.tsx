import type { RunInfo, ViewAnswer, WorkerInfo } from '../api/types';
import { formatBytes, formatCount, formatRatio, plural } from '../base/format';
import { shareLink } from '../base/browser/host';
import { useClient } from '../state/queries';
import { useSelection } from '../state/selection';
import { Button } from '../widgets/inputs/Button';
import { CopyButton } from '../widgets/inputs/CopyButton';
import { Icon, type IconName } from '../widgets/Icon';
import type { Option } from '../widgets/inputs/Listed';
import { Picker } from '../widgets/inputs/Picker';
import { AboutReport } from './AboutReport';
import css from './TopBar.module.css';

interface Props {
  runs: RunInfo[];
  run: string | undefined;
  workers: WorkerInfo[];
  answer: ViewAnswer<never> | undefined;
  failed: boolean;
  onHealth: () => void;
}

export function TopBar({ runs, run, workers, answer, failed, onHealth }: Props) {
  const { selection, select } = useSelection();
  const { report } = useClient();
  const shownWorker = answer?.worker ?? selection.worker;
  const worker = workers.find(one => one.name === shownWorker) ?? workers[0];
  const spans = worker?.spans ?? [];
  const at = Math.max(
    spans.findIndex(span => span.name === (selection.span ?? answer?.span)),
    0,
  );
  if (runs.length === 0) {
    return <div className={css.top} />;
  }
  return (
    <div className={css.top} role="region" aria-label="What is shown">
      <span data-picker="r">
        <Picker
          name="Run"
          value={run}
          options={runs.map(runOption)}
          note={runs.length > 1 ? `of ${formatCount(runs.length)}` : undefined}
          onPick={name => select({ run: name })}
        />
      </span>
      <span data-picker="w">
        <Picker
          name="Worker"
          value={worker?.name}
          options={workers.map(workerOption)}
          note={workers.length > 1 ? `of ${formatCount(workers.length)}` : undefined}
          onPick={name => select({ run, worker: name })}
        />
      </span>
      {spans.length > 1 && worker && (
        <span className="button spans" title={spans[at]?.label}>
          <span className="dim">Span</span>
          <Button
            look="bare"
            aria-label="Previous span"
            disabled={at === 0}
            onClick={() => select({ run, worker: worker.name, span: spans[at - 1]!.name })}
          >
            <Icon name="left" size={14} />
          </Button>
          {at + 1} of {spans.length}
          <Button
            look="bare"
            aria-label="Next span"
            disabled={at === spans.length - 1}
            onClick={() => select({ run, worker: worker.name, span: spans[at + 1]!.name })}
          >
            <Icon name="right" size={14} />
          </Button>
        </span>
      )}
      <span className="grow" />
      <HealthBadge state={spans[at]?.state} answer={answer} failed={failed} onClick={onHealth} />
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
  const [kind, icon, text] = badge(state, answer, failed);
  return (
    <Button
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

function badge(
  state: BadgeProps['state'],
  answer: BadgeProps['answer'],
  failed: boolean,
): [string, IconName, string] {
  if (failed || state?.state === 'failed') {
    return ['bad', 'error', 'Cannot be read'];
  }
  const read = answer?.state === 'ready' || state?.state === 'ready';
  if (!read && answer?.state === 'loading' && answer.progress?.bytes_total) {
    return [
      'neutral',
      'clock',
      `Reading, ${formatRatio(answer.progress.bytes_done / answer.progress.bytes_total)}`,
    ];
  }
  if (!read || !state?.health) {
    return read ? ['neutral', 'check', 'Read'] : ['neutral', 'clock', 'Reading'];
  }
  const { error, warning, info } = state.health;
  if (error > 0) {
    return ['bad', 'error', `Damaged: ${plural(error + warning, 'finding')}`];
  }
  if (warning > 0) {
    return ['warn', 'warning', plural(warning + info, 'finding')];
  }
  return info > 0 ? ['ok', 'check', `Complete, ${plural(info, 'note')}`] : ['ok', 'check', 'Trace complete'];
}

function runOption(run: RunInfo): Option {
  const { failed, loading, ready, waiting } = run.files;
  const total = failed + loading + ready + waiting;
  const [status, icon, text]: [string, IconName, string] =
    failed > 0
      ? ['error', 'error', failed === total ? 'cannot be read' : `${failed} of ${total} cannot be read`]
      : loading > 0
        ? ['info', 'clock', 'reading']
        : ready > 0
          ? ['ok', 'check', 'read']
          : ['dim', 'clock', 'not read yet'];
  return {
    value: run.name,
    label: run.name,
    mark: (
      <span className={`status ${status}`} title={text}>
        <Icon name={icon} size={14} />
      </span>
    ),
    detail: `${plural(run.workers, 'worker')}${run.spans > 1 ? `, ${run.spans} spans` : ''} · ${formatBytes(run.bytes)}`,
  };
}

function workerOption(worker: WorkerInfo): Option {
  const bytes = worker.spans.reduce((sum, span) => sum + span.bytes, 0);
  const rank = worker.rank === null ? '' : `rank ${worker.rank} · `;
  return { value: worker.name, label: worker.name, detail: `${rank}${formatBytes(bytes)}` };
}
