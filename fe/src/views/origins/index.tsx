// Which part of the program the kernels come from, and why that is unknown for some.
import { useMemo } from 'react';
import type { OriginRow, OriginsPayload } from '../../api/types';
import { formatDuration, plural } from '../../base/format';
import { useSelection } from '../../state/selection';
import { useTableState } from '../../state/table';
import { Answer } from '../../widgets/Answer';
import { Name } from '../../widgets/Name';
import { Panel } from '../../widgets/Panel';
import { Sentence, TextWithCode } from '../../widgets/Sentence';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { timelineTarget } from '../_shared/modules/select';
import css from './index.module.css';

export default function OriginsView({ payload, crumb }: { payload: OriginsPayload; crumb: string }) {
  const { select } = useSelection();
  const table = useTableState();
  const columns = useMemo(() => originColumns(payload), [payload]);
  const open = (row: OriginRow | undefined) => row && select(timelineTarget(row.event, false));
  return (
    <div className={css.view}>
      <Answer crumb={crumb} why={payload.details.length > 0 && <Sentence text={payload.details} />}>
        <Sentence text={payload.headline} />
      </Answer>
      {payload.reasons.length > 0 && (
        <Panel title="What is unknown, and why">
          <ul className={css.list} data-part="reasons">
            {payload.reasons.map(({ reason, kernels, ns }) => (
              <li key={reason}>
                <TextWithCode text={reason} />{' '}
                <span className="dim">{`${plural(kernels, 'kernel')}, ${formatDuration(ns)}`}</span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {payload.captures.length > 0 && (
        <Panel title="Captures of graphs">
          <ul className={css.list} data-part="captures">
            {payload.captures.map(({ source, size, captures, launches, replays }) => (
              <li key={`${source} ${size}`}>
                {source}
                {size !== null && `, batch size ${size}`}{' '}
                <span className="dim">
                  {`${plural(captures, 'capture')}, ${plural(launches, 'launch', 'launches')}, explains `}
                  {plural(replays, 'replay')}
                </span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <div className={css.table}>
        <DataTable
          name="origins"
          noun="kernel"
          rows={payload.rows}
          columns={columns}
          rowKey={row => String(row.event)}
          {...table}
          placeholder="Filter by kernel, operator, module or line"
          onOpen={open}
          foot="Double-click a row to show its longest kernel on the timeline."
        />
      </div>
    </div>
  );
}

const UNKNOWN = 'Unknown for this kernel.';

function originColumns(payload: OriginsPayload): Column<OriginRow>[] {
  const total = payload.rows.reduce((sum, row) => sum + row.ns, 0);
  return [
    {
      id: 'name',
      title: 'Kernel',
      kind: 'text',
      width: 232,
      value: row => row.name,
      shownName: row => row.short_name,
      render: row => <Name text={row.short_name} title={row.name} />,
    },
    {
      id: 'operator',
      title: 'Operator',
      kind: 'text',
      value: row => row.operator,
      reason: UNKNOWN,
      width: 170,
    },
    { id: 'module', title: 'Module', kind: 'text', value: row => row.module, reason: UNKNOWN },
    { id: 'line', title: 'Line', kind: 'text', value: row => row.line, reason: UNKNOWN, width: 130 },
    {
      id: 'how',
      title: 'Known by',
      kind: 'text',
      width: 130,
      value: row => row.how ?? (row.reason === null ? null : `unknown: ${row.reason}`),
    },
    { id: 'kernels', title: 'Calls', kind: 'count', value: row => row.kernels },
    {
      id: 'ns',
      title: 'Total',
      kind: 'duration',
      value: row => row.ns,
      bar: { of: total, color: 'var(--c-kernel)', percent: true },
    },
  ];
}
