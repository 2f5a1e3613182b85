// Where the ranks are: stacks side by side, library frames folded.
import { useState } from 'react';
import type { HangStack } from '../../api/types';
import { plural } from '../../base/format';
import { Button } from '../../widgets/inputs/Button';
import { Panel } from '../../widgets/Panel';
import { TextWithCode } from '../../widgets/Sentence';
import { formatRanks } from './select';
import css from './Stacks.module.css';

export function Stacks({ stacks }: { stacks: readonly HangStack[] }) {
  return (
    <Panel title="Where they are" note="innermost frame last; library frames folded">
      <div className={css.stacks}>
        {stacks.map(stack => (
          <Stack key={stack.title} stack={stack} />
        ))}
      </div>
    </Panel>
  );
}

function Stack({ stack }: { stack: HangStack }) {
  const [all, setAll] = useState(false);
  const frames = stack.frames.toReversed();
  const shown = all ? frames : frames.filter(frame => !frame.library);
  const folded = frames.length - frames.filter(frame => !frame.library).length;
  return (
    <div>
      <h3 className={css.title}>
        {stack.title}{' '}
        <span className={`badge ${stack.culprit ? 'bad' : 'neutral'}`}>{formatRanks(stack.ranks)}</span>
      </h3>
      {frames.length > 0 && (
        <pre className={css.frames}>
          {shown.map((frame, i) => (
            <div key={i} className={i === shown.length - 1 ? css.last : undefined} title={frame.file}>
              <span>{`${baseName(frame.file)}:${frame.line}`}</span> {frame.function}
            </div>
          ))}
          {shown.length === 0 && <div>All frames are in libraries.</div>}
        </pre>
      )}
      {folded > 0 && (
        <Button look="link" onClick={() => setAll(!all)}>
          {all ? 'Fold libraries' : `Show ${plural(folded, 'library frame')}`}
        </Button>
      )}
      {stack.note && (
        <p className={css.note}>
          <TextWithCode text={stack.note} />
        </p>
      )}
    </div>
  );
}

const baseName = (path: string) => path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
