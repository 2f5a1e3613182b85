// The sentence above the module tree. No React.
import type { ModuleRow, ModulesPayload } from '../../api/types';
import { formatDuration, formatRatio, plural } from '../../base/format';
import { byClass, flat, ownHost, type ClassRow, type Sentence } from '../_shared/modules/select';

type Tree = Pick<
  ModulesPayload,
  'rows' | 'has_device' | 'has_backward' | 'device_ns' | 'outside' | 'unlinked'
>;

/** Which kind of module takes the most time, and where the rest is. */
export function sentence(tree: Tree): Sentence {
  const classes = byClass(tree.rows);
  const own = (row: ClassRow) => (tree.has_device ? row.device : row.host + row.backwardHost);
  const total = classes.reduce((sum, row) => sum + own(row), 0);
  const top = classes.reduce<ClassRow | undefined>(
    (best, row) => (best && own(best) >= own(row) ? best : row),
    undefined,
  );
  const kind = tree.has_device ? 'device time' : 'host time';
  if (!top || total === 0) {
    return {
      before: tree.has_device
        ? 'No device work was launched inside a module.'
        : 'The modules took no time that was recorded.',
      mark: '',
      after: '',
      why: rest(tree),
    };
  }
  const share = formatRatio(own(top) / total);
  const name = top.name.split('.').pop()!;
  return {
    before: top.instances === 1 ? `${name} takes ` : `The ${plural(top.instances, `${name} module`)} take `,
    mark: `${share} of the modules’ ${kind}`,
    after: '.',
    why: [split(tree), rest(tree)].filter(Boolean).join(' '),
  };
}

function split(tree: Tree): string {
  if (!tree.has_backward) {
    return '';
  }
  const all = flat(tree.rows);
  const sum = (of: (row: ModuleRow) => number) => all.reduce((total, row) => total + of(row), 0);
  const forward = tree.has_device ? sum(row => row.forward_device_self_ns) : sum(ownHost);
  const backward = sum(row => (tree.has_device ? row.backward_device_self_ns : row.backward_host_self_ns));
  return `Forward ${formatDuration(forward)}, backward ${formatDuration(backward)}.`;
}

function rest(tree: Tree): string {
  if (!tree.has_device) {
    return '';
  }
  const parts = [
    [tree.outside.device_ns, 'was launched outside of any module'] as const,
    [tree.unlinked.device_ns, 'is not linked to a launch'] as const,
  ].filter(([ns]) => ns > 0);
  if (parts.length === 0) {
    return 'All device work was launched in modules.';
  }
  return `Of all device time ${parts
    .map(([ns, what]) => `${formatRatio(ns / tree.device_ns)} ${what}`)
    .join(', ')}.`;
}
