// Tables of the Hangs tab: groups with the root first, and the ranks, those that differ first.
import { useMemo, useState } from 'react';
import type { HangGroupRow, HangRankRow } from '../../api/types';
import { useTableState } from '../../state/table';
import type { Column } from '../../widgets/table/columns';
import { DataTable } from '../../widgets/table/DataTable';
import { formatRanks, ranksInOrder } from './select';
import css from './index.module.css';

const GROUP_COLUMNS: Column<HangGroupRow>[] = [
  { id: 'group_desc', title: 'Group', kind: 'code', value: row => row.group_desc || row.group, width: 96 },
  { id: 'ranks', title: 'Ranks', kind: 'text', value: row => formatRanks(row.ranks), width: 72 },
  { id: 'last_finished', title: 'Last finished', kind: 'count', value: row => row.last_finished, width: 84 },
  { id: 'first_pending', title: 'First pending', kind: 'count', value: row => row.first_pending, width: 84 },
  { id: 'pending_name', title: 'Call', kind: 'code', value: row => row.pending_name, width: 88 },
  { id: 'waiting', title: 'Waiting', kind: 'text', value: row => formatRanks(row.waiting), width: 72 },
  { id: 'missing', title: 'Missing', kind: 'text', value: row => formatRanks(row.missing), width: 88 },
  {
    id: 'waits_for',
    title: 'Waits for',
    kind: 'text',
    value: row => (row.root ? `${row.waits_for} (root)` : row.waits_for),
    width: 84,
  },
];

export function HangGroups({ groups }: { groups: readonly HangGroupRow[] }) {
  // The address holds the sorting and search of the ranks.
  const [sort, setSort] = useState<{ id: string; descending: boolean }>();
  const [search, setSearch] = useState({ text: '', regex: false });
  return (
    <div className={css.table}>
      <DataTable
        name="hangs-groups"
        noun="group"
        rows={groups as HangGroupRow[]}
        columns={GROUP_COLUMNS}
        rowKey={row => `${row.group} ${row.ranks[0]}`}
        sort={sort}
        onSort={setSort}
        search={search}
        onSearch={setSearch}
        placeholder="Filter groups"
        foot={
          groups.some(group => group.root) ? 'Who waits for whom, root cause first.' : 'Who waits for whom.'
        }
      />
    </div>
  );
}

const RANK_COLUMNS: Column<HangRankRow>[] = [
  { id: 'rank', title: 'Rank', kind: 'count', value: row => row.rank, width: 56 },
  { id: 'role', title: 'Role', kind: 'text', value: row => row.role, width: 84, grow: false },
  { id: 'pending_name', title: 'Is in', kind: 'code', value: row => row.pending_name, width: 104 },
  { id: 'pending_seq_id', title: 'Number', kind: 'count', value: row => row.pending_seq_id },
  { id: 'group', title: 'Group', kind: 'code', value: row => row.group, width: 96 },
  { id: 'waited_ns', title: 'Waited', kind: 'duration', value: row => row.waited_ns },
  { id: 'line', title: 'Line', kind: 'code', value: row => row.line, width: 176 },
  { id: 'last_name', title: 'Last finished', kind: 'code', value: row => row.last_name, width: 104 },
  { id: 'last_seq_id', title: 'Number', kind: 'count', value: row => row.last_seq_id },
  { id: 'entries', title: 'Entries', kind: 'count', value: row => row.entries },
  { id: 'state', title: 'Dump', kind: 'text', value: row => row.problem ?? row.state, width: 88 },
];

export function HangRanks({ ranks, culprits }: { ranks: readonly HangRankRow[]; culprits: string }) {
  const table = useTableState();
  const rows = useMemo(() => ranksInOrder(ranks), [ranks]);
  return (
    <div className={css.table}>
      <DataTable
        name="hangs-ranks"
        noun="rank"
        rows={rows}
        columns={RANK_COLUMNS}
        rowKey={row => String(row.rank)}
        {...table}
        placeholder="Filter ranks"
        foot={
          culprits
            ? `Ranks that differ come first: ${culprits}.`
            : ranks.some(each => each.state !== 'ready') && 'Ranks without a readable dump come first.'
        }
      />
    </div>
  );
}
