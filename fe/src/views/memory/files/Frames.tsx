import { SourceFrame } from '../../../widgets/SourceFrame';
import type { MemorySnapshot } from '../../../api/types';
import sourceFrameCss from '../../../widgets/SourceFrame.module.css';

/** The frames of a stack, innermost first. */
export function Frames({ frames }: { frames: MemorySnapshot['stacks'][number]['frames'] }) {
  return (
    <ol className={sourceFrameCss.frames}>
      {frames.map((frame, i) => (
        // oxlint-disable-next-line react/no-array-index-key -- recursion repeats a frame
        <li key={i}>
          <SourceFrame text={frame.text} file={frame.file} line={frame.line} />
        </li>
      ))}
    </ol>
  );
}
