import type { MemoryFileInfo } from '../../../api/types';
import { formatBytes } from '../../../base/format';
import { Answer } from '../../../widgets/Answer';
import pageCss from '../index.module.css';

interface Props {
  file: MemoryFileInfo;
  crumb: string;
  files: React.ReactNode;
  error: Error | null;
}

/** A memory file that is being read, or why it can't be. */
export function UnreadFile({ file, crumb, files, error }: Props) {
  return (
    <div className={pageCss.view}>
      <Answer crumb={`${crumb} · ${file.name}`} why={error ? error.message : formatBytes(file.bytes)}>
        {error ? 'This file can’t be shown.' : 'Reading the file…'}
      </Answer>
      <div className={pageCss.tools} data-part="file-tools">
        {files}
      </div>
      {!error && <div className={`panel skeleton ${pageCss.placeholder}`} />}
    </div>
  );
}
