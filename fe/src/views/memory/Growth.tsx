// Memory that grows from step to step, and the code that allocated it.
import { useMemo, useState } from 'react';
import type { MemoryGrowth } from '../../api/types';
import { formatBytes, formatSignedBytes, plural } from '../../base/format';
import { useTableState } from '../../state/table';
import { Button } from '../../widgets/inputs/Button';
import { Sentence } from '../../widgets/Sentence';
import { SourceFrame } from '../../widgets/SourceFrame';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { useStepWords, type Say } from '../../state/steps';
import type { Phrase } from '../../base/text';
import rowDetailCss from '../../widgets/table/RowDetail.module.css';
import sourceFrameCss from '../../widgets/SourceFrame.module.css';
import css from './Growth.module.css';
import splitCss from '../../widgets/table/Split.module.css';

type Row = MemoryGrowth['holders'][number];

interface Props {
  growth: MemoryGrowth | undefined;
  reason: readonly Phrase[] | undefined;
  /** Why no stacks are recorded. */
  stacks: readonly Phrase[] | undefined;
  onEvent: (event: number) => void;
  before: React.ReactNode;
}

export function Growth({ growth, reason, stacks, onEvent, before }: Props) {
  const table = useTableState({ id: 'growth_bytes', descending: true });
  const [chosen, setChosen] = useState<Row>();
  const say = useStepWords();
  const columns = useMemo(() => columnsOf(growth?.steps ?? [], say), [growth, say]);
  const rows = growth?.holders ?? [];
  return (
    <div className={`${splitCss.split} ${chosen ? splitCss.withDetail : ''}`}>
      <DataTable
        name="memory-growth"
        rows={rows}
        columns={columns}
        rowKey={row => String(row.event)}
        selected={chosen && String(chosen.event)}
        onSelect={setChosen}
        onOpen={row => onEvent(row.operator_event ?? row.event)}
        {...table}
        placeholder={`Filter ${plural(rows.length, 'holder')}`}
        before={before}
        noun="holder"
        empty={<Sentence text={growth?.verdict ?? reason ?? []} />}
        foot={
          growth?.per_step_bytes !== undefined &&
          growth.per_step_bytes !== null &&
          `${formatSignedBytes(growth.per_step_bytes)} ${say('per step')} on average, never released`
        }
      />
      {chosen && (
        <aside className={rowDetailCss.detail} data-part="row-detail">
          <h2>{chosen.name ?? 'outside operators'}</h2>
          <p>
            <Sentence text={chosen.summary} />
          </p>
          {chosen.module && <p className="dim">In {chosen.module}</p>}
          <Button onClick={() => onEvent(chosen.operator_event ?? chosen.event)}>
            Show the newest block on the timeline
          </Button>
          <h3>Call stack</h3>
          {chosen.frames.length > 0 ? (
            <ol className={sourceFrameCss.frames}>
              {chosen.frames.map((frame, i) => (
                // oxlint-disable-next-line react/no-array-index-key -- recursion repeats a frame
                <li key={i}>
                  <SourceFrame text={frame.text} file={frame.file} line={frame.line} />
                </li>
              ))}
            </ol>
          ) : (
            <p className="dim">
              {stacks ? <Sentence text={stacks} /> : 'No Python frame was recorded around these allocations.'}
            </p>
          )}
        </aside>
      )}
    </div>
  );
}

function columnsOf(steps: string[], say: Say): Column<Row>[] {
  return [
    {
      id: 'name',
      title: 'Allocated by',
      kind: 'text',
      value: row => row.name ?? 'outside operators',
    },
    {
      id: 'module',
      title: 'Module',
      kind: 'text',
      value: row => row.module,
      reason: 'Outside any module.',
    },
    { id: 'growth_bytes', title: 'Growth', kind: 'bytes', value: row => row.growth_bytes },
    { id: 'blocks', title: 'Blocks', kind: 'count', value: row => row.blocks },
    {
      id: 'step_bytes',
      title: `Live at the end of ${plural(steps.length, say('step'))}`,
      kind: 'number',
      width: 180,
      value: row => row.step_bytes[row.step_bytes.length - 1],
      render: row => <Spark values={row.step_bytes} labels={steps} />,
    },
  ];
}

function Spark({ values, labels }: { values: number[]; labels: string[] }) {
  const say = useStepWords();
  const most = Math.max(...values, 1);
  return (
    <span
      className={css.spark}
      title={values.map((value, i) => `${say('step')} ${labels[i]}: ${formatBytes(value)}`).join('\n')}
    >
      {values.map((value, i) => (
        <i key={labels[i]} style={{ height: `${Math.max((value / most) * 100, 4)}%` }} />
      ))}
    </span>
  );
}
