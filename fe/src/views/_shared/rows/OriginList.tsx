// Where the kernels of a row come from: source lines and operators, most time first.
import type { OriginTimeRow } from '../../../api/types';
import { formatDuration, plural } from '../../../base/format';
import rowDetailCss from '../../../widgets/table/RowDetail.module.css';

export function OriginList({ rows }: { rows: OriginTimeRow[] }) {
  return (
    <ol className={rowDetailCss.stacks} data-part="lines">
      {rows.map(row => (
        <li key={`${row.operator} ${row.module} ${row.lines.join()} ${row.event}`}>
          <span className="mono">{joinLines(row.lines) || (row.module ?? row.operator ?? row.reason)}</span>{' '}
          <span className="dim">
            {(row.lines.length > 0 || row.module !== null) && row.operator !== null && `${row.operator}, `}
            <span className={rowDetailCss.nowrap}>
              {formatDuration(row.ns)} in {plural(row.kernels, 'kernel')}
            </span>
          </span>
        </li>
      ))}
    </ol>
  );
}

/** Return source lines, each file named once: "model.py:4, 9, layers.py:3". */
export function joinLines(lines: readonly string[]): string {
  const byFile = new Map<string, string[]>();
  for (const line of lines) {
    const colon = line.lastIndexOf(':');
    const file = line.slice(0, colon);
    byFile.set(file, [...(byFile.get(file) ?? []), line.slice(colon + 1)]);
  }
  return [...byFile].map(([file, numbers]) => `${file}:${numbers.join(', ')}`).join(', ');
}
