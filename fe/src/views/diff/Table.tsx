// Rows with a time on both sides and the verdict on the difference.
import { useMemo } from 'react';
import { formatNumber, formatSignedDuration, formatSignedRatio, plural } from '../../base/format';
import { useTableState } from '../../state/table';
import { Name } from '../../widgets/Name';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { familyColor } from '../../base/family';
import { useStepWords, type Say } from '../../state/steps';
import { isSignificant, type DiffRow } from './select';
import { Verdict } from './Verdict';
import css from './Table.module.css';

interface Props {
  name: string;
  title: string;
  rows: DiffRow[];
  before: React.ReactNode;
  only: boolean;
  empty: string;
  onOpen?: (row: DiffRow) => void;
}

const STATUS: Record<string, { word: string; why: string } | undefined> = {
  added: { word: 'added', why: 'Only in the candidate.' },
  removed: { word: 'removed', why: 'Only in the base.' },
  moved_in: { word: 'moved in', why: 'In the base, worker processes that weren’t recorded load the data.' },
  moved_out: {
    word: 'moved out',
    why: 'In the candidate, worker processes that weren’t recorded load the data.',
  },
  not_recorded: {
    word: 'not recorded',
    why: 'Only one side recorded such events, so it may be neither new nor gone.',
  },
};

export function DiffTable({ name, title, rows, before, only, empty, onOpen }: Props) {
  const table = useTableState();
  const shown = useMemo(() => (only ? rows.filter(row => isSignificant(row.change)) : rows), [rows, only]);
  const say = useStepWords();
  const columns = useMemo(() => columnsOf(title, rows, say), [title, rows, say]);
  return (
    <DataTable
      name={`diff-${name}`}
      rows={shown}
      columns={columns}
      rowKey={row => row.key}
      searchText={row => `${row.name}\n${row.renamed ?? ''}\n${row.short?.name ?? ''}\n${row.family ?? ''}`}
      onOpen={onOpen}
      {...table}
      placeholder={`Filter ${plural(shown.length, 'row')}`}
      before={before}
      noun={only ? 'significant change' : 'row'}
      empty={
        only && rows.length > 0
          ? 'No significant changes. Clear “Only significant changes” to see every row.'
          : empty
      }
    />
  );
}

const NO_FLOPS = 'It launched no device work, or its FLOPs are unknown.';

/** FLOPs and FLOP/s on both sides. */
const flopsColumns = (say: Say): Column<DiffRow>[] => [
  {
    id: 'gflop',
    title: say('GFLOP / step'),
    kind: 'number',
    width: 130,
    value: row => row.work?.candidate_flops ?? row.work?.base_flops ?? null,
    reason: NO_FLOPS,
    render: row => <BothSides base={row.work?.base_flops} candidate={row.work?.candidate_flops} unit={1e9} />,
  },
  {
    id: 'tflops',
    title: 'TFLOP/s',
    kind: 'number',
    width: 130,
    value: row => row.work?.candidate_flops_per_s ?? row.work?.base_flops_per_s ?? null,
    reason: NO_FLOPS,
    render: row => (
      <BothSides base={row.work?.base_flops_per_s} candidate={row.work?.candidate_flops_per_s} unit={1e12} />
    ),
  },
];

function BothSides({
  base,
  candidate,
  unit,
}: {
  base?: number | null;
  candidate?: number | null;
  unit: number;
}) {
  const [old, now] = [base, candidate].map(value => (value ? formatNumber(value / unit) : '–'));
  return (
    <span>
      {old !== now && <span className="dim">{old} → </span>}
      {now}
    </span>
  );
}

const calls = (count: number | null): string => (count === null ? '–' : formatNumber(count));

function columnsOf(title: string, rows: DiffRow[], say: Say): Column<DiffRow>[] {
  const largest = rows.reduce((all, row) => Math.max(all, Math.abs(row.change.delta_ns ?? 0)), 0);
  const unknown = 'Not recorded on at least one side.';
  const hasFlops = rows.some(row => row.work?.base_flops || row.work?.candidate_flops);
  return [
    {
      id: 'name',
      title,
      kind: 'text',
      value: row => row.name,
      shownName: row => row.short?.name ?? row.name,
      render: row => (
        <span className={css.name}>
          {row.family !== undefined && (
            <i className="dot" title={row.family} style={{ background: familyColor(row.family) }} />
          )}
          <Name
            text={row.short?.name ?? row.name}
            title={row.renamed ? `${row.name} → ${row.renamed}` : row.name}
          />
          {row.renamed && (
            <span className="dim clip" title={row.renamed}>
              → {row.short?.renamed ?? row.renamed}
            </span>
          )}
          {STATUS[row.status] && (
            <span className={`badge neutral ${css.status}`} title={STATUS[row.status]!.why}>
              {STATUS[row.status]!.word}
            </span>
          )}
        </span>
      ),
    },
    {
      id: 'calls',
      title: say('Calls / step'),
      kind: 'number',
      width: 110,
      value: row => row.calls.candidate ?? row.calls.base,
      reason: unknown,
      render: row => (
        <span>
          {row.calls.delta_calls !== 0 && <span className="dim">{calls(row.calls.base)} → </span>}
          {calls(row.calls.candidate)}
        </span>
      ),
    },
    { id: 'base', title: 'Base', kind: 'duration', value: row => row.change.base_ns, reason: unknown },
    {
      id: 'candidate',
      title: 'Candidate',
      kind: 'duration',
      value: row => row.change.candidate_ns,
      reason: unknown,
    },
    {
      id: 'bar',
      title: 'faster · slower',
      kind: 'number',
      width: 180,
      value: row => row.change.delta_ns,
      reason: unknown,
      render: row => (
        <DivergingBar
          delta={row.change.delta_ns!}
          largest={largest}
          significant={isSignificant(row.change)}
        />
      ),
    },
    {
      id: 'delta',
      title: 'Change',
      kind: 'number',
      width: 96,
      value: row => row.change.delta_ns,
      reason: unknown,
      render: row => (
        <span className={isSignificant(row.change) ? 'strong' : 'dim'}>
          {formatSignedDuration(row.change.delta_ns!)}
        </span>
      ),
    },
    {
      id: 'ratio',
      title: 'Relative',
      kind: 'number',
      width: 80,
      value: row => row.change.delta_ratio,
      reason: row =>
        row.change.delta_ns === null
          ? unknown
          : row.status === 'added'
            ? 'It isn’t in the base.'
            : 'It takes no time in the base.',
      render: row => <span>{formatSignedRatio(row.change.delta_ratio!)}</span>,
    },
    ...(hasFlops ? flopsColumns(say) : []),
    {
      id: 'q',
      title: 'FDR',
      kind: 'number',
      term: 'false_discovery',
      value: row => row.change.q,
      reason: row =>
        row.change.delta_ns === null ? unknown : say('Too small to be tested, or too few steps.'),
      render: row => <span>{row.change.q! < 0.001 ? '< 0.001' : row.change.q!.toFixed(3)}</span>,
    },
    {
      id: 'verdict',
      title: 'Verdict',
      kind: 'text',
      width: 124,
      grow: false,
      term: 'significance',
      value: row => row.change.verdict,
      render: row => <Verdict change={row.change} />,
    },
  ];
}

function DivergingBar({
  delta,
  largest,
  significant,
}: {
  delta: number;
  largest: number;
  significant: boolean;
}) {
  const share = largest > 0 ? (Math.abs(delta) / largest) * 50 : 0;
  return (
    <span className={css.diverging}>
      <i
        className={significant ? (delta > 0 ? css.slower : css.faster) : css.noise}
        style={delta > 0 ? { left: '50%', width: `${share}%` } : { right: '50%', width: `${share}%` }}
      />
    </span>
  );
}
