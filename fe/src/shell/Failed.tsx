import { ApiError } from '../api/client';
import { formatBytes, plural } from '../base/format';
import { capital, codeToWrite } from '../base/text';
import { useClient, useHealth, useRetry, useViews } from '../state/queries';
import { useSelection } from '../state/selection';
import { Button } from '../widgets/inputs/Button';
import { Answer, Mark } from '../widgets/Answer';
import { ChooseBase } from './ChooseBase';
import { Code } from '../widgets/Code';
import { CopyButton } from '../widgets/inputs/CopyButton';
import { Icon } from '../widgets/Icon';
import { Panel } from '../widgets/Panel';
import { Words } from '../widgets/Sentence';
import type { ErrorInfo, FileHealth } from '../api/types';
import css from './Failed.module.css';

/** What went wrong, where, why, and what still works. */
export function Failed({ error, run }: { error: Error; run: string | undefined }) {
  const { selection, select } = useSelection();
  const health = useHealth(run, true);
  const retry = useRetry();
  const client = useClient();
  const info: ErrorInfo =
    error instanceof ApiError
      ? error.info
      : { code: 'page', message: error.message, where: null, hint: null, stage: null };
  const undecided = info.code === 'undecided';
  const missing = undecided || info.code === 'not_found' || info.code === 'usage';
  const views = useViews({ run: selection.run, worker: selection.worker, span: selection.span });
  const tabs = (views.isPlaceholderData ? undefined : views.data?.views) ?? [];
  const open = tabs.filter(tab => tab.available && tab.slug !== selection.view);
  const files = health.data?.files ?? [];
  const others = files.filter(file => file.state.state !== 'failed').length;
  return (
    <>
      <Answer
        crumb={run ?? ''}
        why={
          missing
            ? !undecided && info.hint && <Words text={info.hint} />
            : others > 0
              ? `${plural(others, 'file')} of this run can be read.`
              : undefined
        }
      >
        {missing ? (
          <Words text={`${capital(info.message)}.`} />
        ) : (
          <>
            <Mark color="var(--st-bad)">This file cannot be read</Mark>: {info.message}.
          </>
        )}
      </Answer>
      {info.code === 'not_found' && codeToWrite(info.message).map(code => <Code key={code}>{code}</Code>)}
      {info.code === 'not_found' && open.length > 0 && (
        <Panel title="What this trace has">
          <div className={css.tabs}>
            {open.map(({ slug, title }) => (
              <Button key={slug} onClick={() => select({ view: slug })}>
                Open {title}
              </Button>
            ))}
          </div>
        </Panel>
      )}
      {!missing && (
        <Panel
          title="What happened"
          actions={
            <>
              <CopyButton text={() => report(info)} label="Copy report" showLabel />
              {!client.report && (
                <Button
                  look="primary"
                  disabled={retry.isPending}
                  onClick={() => retry.mutate({ run, worker: selection.worker, span: selection.span })}
                >
                  Try again
                </Button>
              )}
            </>
          }
        >
          <dl className={css.reason}>
            <dt>Reason</dt>
            <dd>{info.message}</dd>
            {info.where && (
              <>
                <dt>Where</dt>
                <dd className="mono">{info.where}</dd>
              </>
            )}
            {info.stage && (
              <>
                <dt>While</dt>
                <dd>{info.stage}</dd>
              </>
            )}
            {info.hint && (
              <>
                <dt>What to do</dt>
                <dd>
                  <Words text={capital(info.hint)} />
                </dd>
              </>
            )}
          </dl>
        </Panel>
      )}
      {undecided && <ChooseBase run={run} />}
      {missing && !undecided && open.length === 0 && (
        <p>
          <Button
            look="primary"
            onClick={() => select({ view: 'overview', run: undefined, worker: undefined, span: undefined })}
          >
            Go to the first run
          </Button>
        </p>
      )}
      {files.length > 1 && !undecided && (
        <Panel title="Files of this run">
          <Files files={files} onOpen={file => select({ run, worker: file.worker, span: file.span })} />
        </Panel>
      )}
    </>
  );
}

const STATE = {
  ready: ['ok', 'check'],
  failed: ['error', 'error'],
  loading: ['info', 'clock'],
  waiting: ['dim', 'clock'],
} as const;

export function Files({ files, onOpen }: { files: FileHealth[]; onOpen: (file: FileHealth) => void }) {
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Worker</th>
            <th scope="col">What happened</th>
            <th scope="col" className="num">
              Size
            </th>
          </tr>
        </thead>
        <tbody>
          {files.map(file => {
            const [status, icon] = STATE[file.state.state];
            return (
              <tr key={`${file.worker}/${file.span}`}>
                <th scope="row">
                  <span className={`status ${status}`}>
                    <Icon name={icon} size={14} />
                  </span>
                  <Button look="link" onClick={() => onOpen(file)} title={file.file}>
                    {file.worker}
                    {Number(file.span) > 1 && `, span ${file.span}`}
                  </Button>
                </th>
                <td>{happened(file)}</td>
                <td className="num">{formatBytes(file.bytes)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function happened(file: FileHealth): string {
  const { state, error, events } = file.state;
  if (state === 'failed') {
    return error?.message ?? 'failed';
  }
  if (state === 'ready') {
    const damaged = file.notes.some(note => note.severity === 'error');
    return `${damaged ? 'damaged' : 'complete'}, ${plural(events ?? 0, 'event')}`;
  }
  return state === 'loading' ? 'being read' : 'not opened yet';
}

const report = (info: ErrorInfo): string =>
  Object.entries(info)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}: ${String(value)}`)
    .join('\n');
