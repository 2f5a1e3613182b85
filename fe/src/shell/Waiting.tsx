import { useSelection } from '../state/selection';
import { Answer } from '../widgets/Answer';
import { Button } from '../widgets/inputs/Button';
import { Panel } from '../widgets/Panel';
import type { AwaitedTarget } from './awaited';
import css from './Failed.module.css';

/** Most names that are offered instead. */
const MAX_NAMES = 24;

interface Props {
  target: AwaitedTarget;
  root: string;
  run: string | undefined;
}

/** What the page shows until a run, worker or span that the address names is written; then it opens. */
export function Waiting({ target: { kind, name, present }, root, run }: Props) {
  const { select } = useSelection();
  const open = (other: string) =>
    kind === 'run'
      ? select({ run: other })
      : select(kind === 'worker' ? { run, worker: other } : { span: other });
  return (
    <>
      <Answer
        crumb={kind === 'run' ? root : [root, run].join(' · ')}
        why={`It opens here as soon as ${kind === 'run' ? 'its first file is' : 'it is'} in the log folder.`}
      >
        {`Waiting for ${kind} '${name}'.`}
      </Answer>
      {present.length > 0 && (
        <Panel title={`Meanwhile, open another ${kind}`}>
          <div className={css.tabs}>
            {present.slice(0, MAX_NAMES).map(other => (
              <Button key={other} onClick={() => open(other)}>
                {other}
              </Button>
            ))}
          </div>
        </Panel>
      )}
    </>
  );
}
