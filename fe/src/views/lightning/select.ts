// The sentence above the hooks. No React.
import type { HookRow } from '../../api/types';
import { formatDuration, formatRatio, plural } from '../../base/format';
import type { Sentence } from '../_shared/modules/select';

/** Which hook takes the most time that no hook inside it has. */
export function sentence(hooks: readonly HookRow[]): Sentence {
  const all: HookRow[] = [];
  const open = [...hooks];
  for (let row = open.pop(); row; row = open.pop()) {
    all.push(row);
    open.push(...row.children);
  }
  const own = (row: HookRow) => row.host_self_ns + row.operators_ns;
  const total = all.reduce((sum, row) => sum + own(row), 0);
  const top = all.reduce<HookRow | undefined>(
    (best, row) => (best && own(best) >= own(row) ? best : row),
    undefined,
  );
  if (!top || total === 0) {
    return { before: 'Modules of a Lightning run, without its hooks.', mark: '', after: '', why: '' };
  }
  return {
    before: `${top.name} takes `,
    mark: `${formatRatio(own(top) / total)} of the time in hooks`,
    after: '.',
    why: `${plural(all.length, 'hook')} ran ${formatDuration(total)} on the host; time inside a nested hook counts for that one only.`,
  };
}
