// Live memory at an instant, and the code that allocated it.
import { useMemo } from 'react';
import type { MemoryLive } from '../../api/types';
import { formatBytes, formatCount, formatRatio, plural } from '../../base/format';
import { Button } from '../../widgets/inputs/Button';
import { Name, Names } from '../../widgets/Name';
import { SourceFrame } from '../../widgets/SourceFrame';
import { Select } from '../../widgets/inputs/Select';
import { Term } from '../../widgets/Term';
import type { GroupBy } from './state';
import { plainText } from '../../base/text';
import sourceFrameCss from '../../widgets/SourceFrame.module.css';
import css from './Live.module.css';
import panelCss from '../../widgets/Panel.module.css';
import pageCss from './index.module.css';

/** Rows that are listed; the others are summed up in one. */
const MAX_ROWS = 100;

const GROUP_LABELS: Record<GroupBy, string> = {
  operator: 'by operator',
  module: 'by module',
  stack: 'by stack',
  size: 'by size',
};

interface Props {
  live: MemoryLive;
  when: string;
  isPeak: boolean;
  group: GroupBy;
  groups: readonly GroupBy[];
  onGroup: (group: GroupBy) => void;
  onPeak: () => void;
  onPick: (name: string) => void;
  onEvent: (event: number) => void;
}

export function Live({ live, when, isPeak, group, groups, onGroup, onPeak, onPick, onEvent }: Props) {
  const total = live.allocated_bytes ?? live.known_bytes;
  const rows = live.rows.slice(0, MAX_ROWS);
  const rest = live.rows.slice(MAX_ROWS);
  const names = useMemo(() => live.rows.flatMap(row => row.name ?? []), [live]);
  return (
    <section className={`panel ${css.live}`} data-part="memory-live">
      <header className={panelCss.head}>
        <h2>
          {isPeak ? 'Live at the peak' : `Live at ${when}`} <Term id="memory_live" />
        </h2>
        <span className={panelCss.note}>
          {formatBytes(total)}, {plural(live.blocks, 'block')}
        </span>
        <span className={panelCss.actions}>
          {!isPeak && (
            <Button look="quiet" onClick={onPeak}>
              Jump to peak
            </Button>
          )}
          <Select
            label=""
            name="Live by"
            value={group}
            options={groups.map(each => [each, GROUP_LABELS[each]] as const)}
            onChange={onGroup}
          />
        </span>
      </header>
      <ol className={css.rows} data-part="live-rows">
        <Names of={names}>
          {rows.map(row => {
            const name =
              group === 'size'
                ? formatBytes(row.size_bytes ?? 0)
                : (row.name ?? PLACEHOLDERS[group] ?? 'unknown');
            const line = (
              <>
                <Name text={name} />
                <span className="num dim">{formatCount(row.blocks)}</span>
                <Bar share={row.bytes / (total || 1)} />
                <span className="num">{formatBytes(row.bytes)}</span>
                <span className="num dim">{row.share === null ? '' : formatRatio(row.share)}</span>
              </>
            );
            return (
              <li key={row.event}>
                {group === 'stack' && row.frames.length > 0 ? (
                  <details>
                    <summary className={css.row}>{line}</summary>
                    <ol className={sourceFrameCss.frames}>
                      {row.frames.map((frame, i) => (
                        // oxlint-disable-next-line react/no-array-index-key -- recursion repeats a frame
                        <li key={i}>
                          <SourceFrame text={frame.text} file={frame.file} line={frame.line} />
                        </li>
                      ))}
                    </ol>
                  </details>
                ) : (
                  <Button
                    look="bare"
                    className={css.row}
                    title={
                      group === 'operator' ? 'Show its blocks' : 'Show its largest block on the timeline'
                    }
                    onClick={() =>
                      group === 'operator' && row.name !== null
                        ? onPick(row.name)
                        : onEvent(row.operator_event ?? row.event)
                    }
                  >
                    {line}
                  </Button>
                )}
              </li>
            );
          })}
        </Names>
        {rest.length > 0 && (
          <Rest
            name={`${formatCount(rest.length)} more`}
            blocks={sum(rest.map(row => row.blocks))}
            bytes={sum(rest.map(row => row.bytes))}
            total={total}
          />
        )}
        {live.older_bytes !== null && (
          <Rest name="allocated before the trace" term bytes={live.older_bytes} total={total} />
        )}
      </ol>
      {Object.entries(live.reasons).map(([field, reason]) => (
        <p key={field} className={`dim ${pageCss.pad}`}>
          {sentenceCase(plainText(reason))}.
        </p>
      ))}
    </section>
  );
}

const PLACEHOLDERS: Partial<Record<GroupBy, string>> = {
  operator: 'outside operators',
  module: 'outside modules',
  stack: 'no stack recorded',
};

const sum = (values: number[]): number => values.reduce((all, each) => all + each, 0);

const sentenceCase = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function Bar({ share }: { share: number }) {
  return (
    <span className={css.bar}>
      <i style={{ width: `${Math.min(share, 1) * 100}%` }} />
    </span>
  );
}

interface RestProps {
  name: string;
  term?: boolean;
  blocks?: number;
  bytes: number;
  total: number;
}

function Rest({ name, term = false, blocks, bytes, total }: RestProps) {
  return (
    <li className={`${css.row} ${css.rest}`}>
      <span className="clip">
        {name} {term && <Term id="memory_before_trace" />}
      </span>
      <span className="num dim">{blocks !== undefined && formatCount(blocks)}</span>
      <Bar share={bytes / (total || 1)} />
      <span className="num">{formatBytes(bytes)}</span>
      <span className="num dim">{formatRatio(bytes / (total || 1))}</span>
    </li>
  );
}
