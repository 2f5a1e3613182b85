// What the page shows instead of a view: errors of files and parameters, and bugs of the page.
import { Component, type ReactNode } from 'react';
import { ApiError } from '../api/client';
import type { ErrorInfo, FileHealth } from '../api/types';
import { formatBytes, plural } from '../base/format';
import { capitalize, codeToWrite } from '../base/text';
import { useClient, useHealth, useRetry, useRuns, useViews } from '../state/queries';
import { useSelection } from '../state/selection';
import { Answer } from '../widgets/Answer';
import { Code } from '../widgets/Code';
import { Icon } from '../widgets/Icon';
import { Button } from '../widgets/inputs/Button';
import { CopyButton } from '../widgets/inputs/CopyButton';
import { Panel } from '../widgets/Panel';
import { TextWithCode } from '../widgets/Sentence';
import css from './Failed.module.css';

/** An error of a view: what went wrong, where, what to do, and what still works. */
export function Failed({ error, run }: { error: Error; run: string | undefined }) {
  const { selection, select } = useSelection();
  const health = useHealth(run, true);
  const retry = useRetry();
  const client = useClient();
  const info: ErrorInfo =
    error instanceof ApiError
      ? error.info
      : { code: 'page', message: error.message, where: null, hint: null, stage: null };
  const needsBase = info.code === 'undecided';
  const fileIsReadable = needsBase || info.code === 'not_found' || info.code === 'usage';
  const views = useViews({ run: selection.run, worker: selection.worker, span: selection.span });
  const firstRun = useRuns().data?.runs[0]?.name;
  const isFirst = run === firstRun && selection.worker === undefined && selection.span === undefined;
  const tabs = (views.isPlaceholderData ? undefined : views.data?.views) ?? [];
  const otherViews = tabs.filter(tab => tab.available && tab.slug !== selection.view);
  const files = health.data?.files ?? [];
  const readable = files.filter(file => file.state.state === 'ready').length;
  return (
    <>
      <Answer
        crumb={run ?? ''}
        why={
          fileIsReadable
            ? !needsBase && info.hint && <TextWithCode text={capitalize(info.hint)} />
            : readable > 0
              ? `${plural(readable, 'file')} of this run can be read.`
              : undefined
        }
      >
        {fileIsReadable ? (
          <TextWithCode text={`${capitalize(info.message)}.`} />
        ) : (
          <>
            <span className={css.failure}>This file can't be read</span>:{' '}
            <TextWithCode text={`${info.message}.`} />
          </>
        )}
      </Answer>
      {info.code === 'not_found' && codeToWrite(info.message).map(code => <Code key={code}>{code}</Code>)}
      {info.code === 'not_found' && otherViews.length > 0 && (
        <Panel title="Views with data">
          <div className={css.tabs}>
            {otherViews.map(({ slug, title }) => (
              <Button key={slug} onClick={() => select({ view: slug })}>
                Open {title}
              </Button>
            ))}
          </div>
        </Panel>
      )}
      {!fileIsReadable && (
        <Panel
          title="Error details"
          actions={
            <>
              <CopyButton text={() => errorReport(info)} label="Copy details" showLabel />
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
            <dd>
              <TextWithCode text={info.message} />
            </dd>
            {info.where && (
              <>
                <dt>Where</dt>
                <dd className="mono">{info.where}</dd>
              </>
            )}
            {info.stage && (
              <>
                <dt>Stage</dt>
                <dd>{info.stage}</dd>
              </>
            )}
            {info.hint && (
              <>
                <dt>What to do</dt>
                <dd>
                  <TextWithCode text={capitalize(info.hint)} />
                </dd>
              </>
            )}
          </dl>
        </Panel>
      )}
      {needsBase && <BasePicker run={run} />}
      {fileIsReadable && !needsBase && otherViews.length === 0 && !isFirst && (
        <p>
          <Button
            look="primary"
            onClick={() => select({ view: 'overview', run: undefined, worker: undefined, span: undefined })}
          >
            Go to the first run
          </Button>
        </p>
      )}
      {files.length > 1 && !needsBase && (
        <Panel title="Files of this run">
          <Files files={files} onOpen={file => select({ run, worker: file.worker, span: file.span })} />
        </Panel>
      )}
    </>
  );
}

/** Class and icon of the states of a file. */
const FILE_STATUS = {
  ready: ['ok', 'check'],
  failed: ['error', 'error'],
  loading: ['info', 'clock'],
  waiting: ['dim', 'clock'],
} as const;

/** The files of a run with their states. */
export function Files({ files, onOpen }: { files: FileHealth[]; onOpen: (file: FileHealth) => void }) {
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Worker</th>
            <th scope="col">State</th>
            <th scope="col" className="num">
              Size
            </th>
          </tr>
        </thead>
        <tbody>
          {files.map(file => {
            const [status, icon] = FILE_STATUS[file.state.state];
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
                <td>{describeState(file)}</td>
                <td className="num">{formatBytes(file.bytes)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function describeState(file: FileHealth): string {
  const { state, error, events } = file.state;
  if (state === 'failed') {
    return error?.message ?? 'failed';
  }
  if (state === 'ready') {
    const damaged = file.notes.some(note => note.severity === 'error');
    return `${damaged ? 'damaged' : 'complete'}, ${plural(events ?? 0, 'event')}`;
  }
  return state === 'loading' ? 'being read' : 'not read yet';
}

const errorReport = (info: ErrorInfo): string =>
  Object.entries(info)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}: ${String(value)}`)
    .join('\n');

/** The runs that a comparison can take as its base, where the address names none. */
function BasePicker({ run }: { run: string | undefined }) {
  const { selection, select } = useSelection();
  const runs = (useRuns().data?.runs ?? []).filter(other => other.name !== run && other.workers > 0);
  return (
    <Panel title="Compare with">
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Run</th>
              <th scope="col" className="num">
                Workers
              </th>
              <th scope="col" className="num">
                Size
              </th>
            </tr>
          </thead>
          <tbody>
            {runs.map(({ name, workers, bytes }) => (
              <tr key={name}>
                <th scope="row">
                  <Button
                    look="link"
                    onClick={() => select({ params: { ...selection.params, base_run: name } })}
                  >
                    {name}
                  </Button>
                </th>
                <td className="num">{workers.toLocaleString('en')}</td>
                <td className="num">{formatBytes(bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

/** Catches a bug in one view and shows it, so that the rest of the page keeps working. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) {
      return this.props.children;
    }
    return (
      <>
        <Answer
          crumb="A bug in this page"
          why="The other views may still work. The text below helps find the cause."
        >
          This view failed to render.
        </Answer>
        <Code>{`${error.message}\n${error.stack ?? ''}`}</Code>
      </>
    );
  }
}
