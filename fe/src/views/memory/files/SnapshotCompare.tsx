// Two snapshots by site of allocation: ranks of one job, dumps before and after, or two runs.
import type { Selectors, SnapshotComparison } from '../../../api/types';
import { formatBytes, formatCount, formatSignedBytes, plural } from '../../../base/format';
import { useView } from '../../../state/queries';
import { Sentence } from '../../../widgets/Sentence';
import { Frames } from './Frames';
import pageCss from '../index.module.css';
import liveCss from '../Live.module.css';

interface Props {
  selectors: Selectors;
  /** The parameters that name the other snapshot. */
  base: Record<string, string>;
}

export function SnapshotCompare({ selectors, base }: Props) {
  const { data, error } = useView<SnapshotComparison>('memory/compare', selectors, base);
  const found = data?.state === 'ready' ? data.payload : undefined;
  if (!found) {
    return error && <p className="dim">{error.message}</p>;
  }
  const largest = Math.max(...found.sites.map(site => Math.abs(site.bytes)), 1);
  return (
    <>
      <p data-part="compared">
        <Sentence text={found.headline} />
      </p>
      {found.reasons.sites && (
        <p className="dim">
          <Sentence text={found.reasons.sites} />
        </p>
      )}
      <ol className={liveCss.rows} data-part="compared-sites">
        {found.sites
          .filter(site => site.bytes !== 0)
          .map((site, i) => (
            // oxlint-disable-next-line react/no-array-index-key -- a fixed list, largest first
            <li key={i}>
              <details>
                <summary className={liveCss.row}>
                  <span className="clip">{site.frames[0]?.text ?? site.kind}</span>
                  <span className="num dim">{formatCount(site.candidate_blocks)}</span>
                  <span className={liveCss.bar}>
                    <i style={{ width: `${(Math.abs(site.bytes) / largest) * 100}%` }} />
                  </span>
                  <span className="num">{formatSignedBytes(site.bytes)}</span>
                  <span className="num dim">{site.bytes < 0 ? 'less' : 'more'}</span>
                </summary>
                <p className={`dim ${pageCss.pad}`}>
                  {formatBytes(site.base_bytes)} in {plural(site.base_blocks, 'block')} there,{' '}
                  {formatBytes(site.candidate_bytes)} in {plural(site.candidate_blocks, 'block')} here;{' '}
                  {formatSignedBytes(site.more_bytes)} by their number, {formatSignedBytes(site.larger_bytes)}{' '}
                  by their size.
                </p>
                <Frames frames={site.frames} />
              </details>
            </li>
          ))}
      </ol>
    </>
  );
}
