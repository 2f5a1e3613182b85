import { Drawer } from '@mantine/core';
import type { OtherTools } from '../api/types';
import { formatCount } from '../base/format';
import { useHealth } from '../state/queries';
import { useSelection } from '../state/selection';
import { Icon } from '../widgets/Icon';
import { Term } from '../widgets/Term';
import { Files } from './Failed';
import css from './HealthDrawer.module.css';

/** On opening, Close gets the focus: the first button is the "?" of the title, whose card opens on focus. */
const CLOSE_BUTTON = { 'aria-label': 'Close', 'data-autofocus': true };

interface Props {
  run: string | undefined;
  /** Log folders that couldn't be listed, and runs that were renamed. */
  problems: readonly string[];
  /** Files of other tools in the log folders. */
  others: OtherTools | null;
  open: boolean;
  onClose: () => void;
}

/** The files of the run with what was skipped, repaired, or questionable in them, and problems of the log folders. */
export function HealthDrawer({ run, problems, others, open, onClose }: Props) {
  const { select } = useSelection();
  const health = useHealth(run, open);
  const files = health.data?.files ?? [];
  const filesWithNotes = files.filter(file => file.notes.length > 0);
  return (
    <Drawer
      opened={open}
      onClose={onClose}
      position="right"
      size={520}
      title={
        <span>
          Trace health <Term id="health" />
        </span>
      }
      closeButtonProps={CLOSE_BUTTON}
    >
      <p className="dim">{run}</p>
      <Files
        files={files}
        onOpen={file => {
          select({ run, worker: file.worker, span: file.span });
          onClose();
        }}
      />
      {filesWithNotes.map(file => (
        <section key={`${file.worker}/${file.span}`} className={css.notes}>
          <h3>
            {file.worker}
            {Number(file.span) > 1 && `, span ${file.span}`}
          </h3>
          <ul>
            {file.notes.map(note => (
              <li key={note.kind}>
                <span className={`status ${note.severity}`} title={note.severity}>
                  <Icon name={note.severity === 'info' ? 'info' : 'warning'} size={14} />
                </span>
                <span>
                  {note.message}
                  <span className="dim">
                    {' '}
                    · {formatCount(note.count ?? 1)}×
                    {note.first_offset !== null &&
                      note.first_offset !== undefined &&
                      `, first at byte ${formatCount(note.first_offset)}`}
                  </span>
                </span>
              </li>
            ))}
          </ul>
        </section>
      ))}
      {files.some(file => file.state.state === 'ready') && filesWithNotes.length === 0 && (
        <p className="dim">Nothing was skipped or repaired in the files read so far.</p>
      )}
      {problems.length > 0 && (
        <section className={css.notes}>
          <h3>Log folders</h3>
          <ul>
            {problems.map(problem => (
              <li key={problem}>
                <span className="status warning" title="warning">
                  <Icon name="warning" size={14} />
                </span>
                <span>{problem}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {others && (
        <section className={css.notes}>
          <h3>{others.headline}</h3>
          <OtherFiles others={others} />
        </section>
      )}
    </Drawer>
  );
}

/** The files of other tools in the log folders: what they are, and what opens them. */
export function OtherFiles({ others }: { others: OtherTools }) {
  return (
    <div className={css.notes}>
      <ul>
        {others.kinds.map(({ kind, advice, count, files }) => (
          <li key={kind}>
            <span className="status info" title="info">
              <Icon name="info" size={14} />
            </span>
            <span>
              {kind}: {advice}
              <span className="dim" title={files.join('\n')}>
                {' '}
                · {files[0]}
                {count > 1 && ` and ${formatCount(count - 1)} more`}
              </span>
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
