// What is in use at an instant of a snapshot, by category, module or site.
import { useState } from 'react';
import type { MemoryFileInfo, MemoryInstant, MemorySnapshot, Selectors } from '../../../api/types';
import { formatBytes, formatCount, formatRatio, plural } from '../../../base/format';
import { useView } from '../../../state/queries';
import { Button } from '../../../widgets/inputs/Button';
import { Choice } from '../../../widgets/inputs/Choice';
import { Sentence } from '../../../widgets/Sentence';
import { memoryCategoryColor } from './categories';
import { Frames } from './Frames';
import pageCss from '../index.module.css';
import liveCss from '../Live.module.css';
import panelCss from '../../../widgets/Panel.module.css';

interface Props {
  selectors: Selectors;
  file: MemoryFileInfo;
  snapshot: MemorySnapshot;
  /** Null for the state of the snapshot itself. */
  entry: number | null;
  onPick: (entry: number | null) => void;
}

type Grouping = 'category' | 'module' | 'site';
const GROUPINGS: readonly (readonly [Grouping, string])[] = [
  ['category', 'Category'],
  ['module', 'Module'],
  ['site', 'Site'],
];

export function SnapshotInstant({ selectors, file, snapshot, entry, onPick }: Props) {
  const [grouping, setGrouping] = useState<Grouping>('site');
  const { data, error } = useView<MemoryInstant>('memory/instant', selectors, {
    file: String(file.file),
    device: String(snapshot.device),
    limit: '100',
    ...(entry !== null && { entry: String(entry) }),
  });
  const instant = data?.state === 'ready' ? data.payload : undefined;
  const moments = [
    ...(snapshot.peak_entry === null ? [] : [['Peak', snapshot.peak_entry] as const]),
    ...(snapshot.step_peak ? [[`Peak in steps`, snapshot.step_peak.entry] as const] : []),
    ...(snapshot.outside_peak ? [['Peak outside of steps', snapshot.outside_peak.entry] as const] : []),
    ...snapshot.out_of_memory.slice(-1).map(each => ['Out of memory', each.entry] as const),
    ['End', null] as const,
  ];
  return (
    <section className={`panel ${liveCss.live}`} data-part="memory-live">
      <header className={panelCss.head}>
        <h2>In use</h2>
        <span className={panelCss.note}>
          {instant &&
            `${formatBytes(instant.bytes)} ${instant.entry === null ? 'at the end' : `after entry ${formatCount(instant.entry)}`}`}
        </span>
      </header>
      <div className={`${pageCss.tools} ${pageCss.pad}`} data-part="moments">
        {moments.map(([title, moment]) => (
          <Button
            key={title}
            look="link"
            className={moment === entry ? 'strong' : ''}
            aria-pressed={moment === entry}
            onClick={() => onPick(moment)}
          >
            {title}
          </Button>
        ))}
        <Choice name="Group by" value={grouping} options={GROUPINGS} onPick={setGrouping} />
      </div>
      {error && <p className={`dim ${pageCss.pad}`}>{error.message}</p>}
      {instant && (
        <>
          <p className={`dim ${pageCss.pad}`} data-part="unknown-share">
            {instant.unknown_ratio > 0
              ? `${formatRatio(instant.unknown_ratio)} of it has no known category.`
              : 'All of it has a category.'}
            {instant.older_bytes > 0 &&
              ` ${formatBytes(instant.older_bytes)} were allocated before the history; their sites aren’t recorded.`}
          </p>
          {!instant.sites[0]?.frames.length && snapshot.reasons.stacks && (
            <p className={`dim ${pageCss.pad}`}>
              <Sentence text={snapshot.reasons.stacks} />
            </p>
          )}
          <ol className={liveCss.rows} data-part="live-rows">
            {grouping === 'category' &&
              Object.entries(instant.categories).map(([name, bytes]) => (
                <Row
                  key={name}
                  name={name}
                  bytes={bytes}
                  total={instant.bytes}
                  color={memoryCategoryColor(name)}
                />
              ))}
            {grouping === 'module' &&
              instant.modules.map(each => (
                <Row key={each.name} {...each} total={instant.bytes} color="var(--c-mem)" />
              ))}
            {grouping === 'site' &&
              instant.sites.map((site, i) => (
                // oxlint-disable-next-line react/no-array-index-key -- a fixed list, largest first
                <Row
                  key={i}
                  name={siteName(site.frames)}
                  bytes={site.bytes}
                  blocks={site.blocks}
                  total={instant.bytes}
                  color={memoryCategoryColor(site.category)}
                  title={site.category}
                >
                  <Frames frames={site.frames} />
                </Row>
              ))}
          </ol>
          {grouping === 'site' && instant.total_sites > instant.sites.length && (
            <p className={`dim ${pageCss.pad}`}>
              The largest {formatCount(instant.sites.length)} of {plural(instant.total_sites, 'site')}.
            </p>
          )}
        </>
      )}
    </section>
  );
}

/** Frames of the allocator, which are the same for every block. */
const ALLOCATOR = /^(?:torch::(?:unwind|CapturedTraceback|cuda)::|c10::cuda::CUDACachingAllocator)/;

/** The innermost frame of Python code, else of what calls the allocator. */
const siteName = (frames: MemorySnapshot['stacks'][number]['frames']): string =>
  (
    frames.find(frame => /\.py\(\d+\)/.test(frame.text)) ??
    frames.find(frame => !ALLOCATOR.test(frame.text)) ??
    frames[0]
  )?.text ?? 'no stack recorded';

/** A path without its folders but the last: the file is what tells sites apart. */
const shortPath = (name: string): string => name.replace(/^.*\/([^/]+\/[^/]+)$/, '$1');

interface RowProps {
  name: string;
  bytes: number;
  blocks?: number;
  total: number;
  color: string;
  title?: string;
  children?: React.ReactNode;
}

function Row({ name, bytes, blocks, total, color, title, children }: RowProps) {
  const [open, setOpen] = useState(false); // a hundred stacks of twenty frames would slow each click
  const cells = (
    <>
      <span className="clip" title={title ? `${title}: ${name}` : name}>
        {shortPath(name)}
      </span>
      <span className="num dim">{blocks === undefined ? '' : formatCount(blocks)}</span>
      <span className={liveCss.bar}>
        <i style={{ width: `${(bytes / (total || 1)) * 100}%`, background: color }} />
      </span>
      <span className="num">{formatBytes(bytes)}</span>
      <span className="num dim">{formatRatio(bytes / (total || 1))}</span>
    </>
  );
  return (
    <li>
      {children ? (
        <details onToggle={event => setOpen(event.currentTarget.open)}>
          <summary className={liveCss.row}>{cells}</summary>
          {open && children}
        </details>
      ) : (
        <div className={`${liveCss.row} ${liveCss.rest}`}>{cells}</div>
      )}
    </li>
  );
}
