// Keys of the operator rows in the address, and their stacks as a tree.
import { sum } from 'd3-array';
import type { OperatorRow, OperatorsPayload, OperatorStacks } from '../../api/types';
import { formatDuration, plural } from '../../base/format';
import type { FlameNode } from '../../widgets/charts/flame/FlameGraph';

/** Return a unique key of a row: its name, and what else the rows are grouped by. */
export function operatorKey(row: OperatorRow): string {
  const groupValues = [
    row.input_shape,
    row.input_types,
    row.input_strides,
    row.module,
    row.annotation,
  ].filter(value => value !== null && value !== undefined);
  return [row.name, ...groupValues].join(' | ');
}

export const hasDevice = (payload: OperatorsPayload): boolean => payload.totals.device_self_ns !== null;

/** Return the total time of all rows; of what graphs replayed, if nothing else ran. */
export function totalsText({ rows, replayed, totals }: OperatorsPayload): string {
  if (rows.length === 0 && replayed.length > 0) {
    return `${formatDuration(sum(replayed, row => row.ns))} in ${plural(
      sum(replayed, row => row.kernels),
      'replayed kernel',
    )}`;
  }
  const device = totals.device_self_ns ? `, ${formatDuration(totals.device_self_ns)} on the device` : '';
  return `${formatDuration(totals.host_self_ns)} on the host${device}`;
}

/** Return the merged stacks as a tree; `time` selects the width. */
export function stackTree(stacks: OperatorStacks, time: 'host' | 'device'): FlameNode {
  const nodes: FlameNode[] = stacks.frames.map(frame => ({
    name: shortFrame(frame.text),
    value: time === 'host' ? frame.host_ns : frame.device_ns,
    children: [],
    note: `${plural(frame.calls, 'call')}${frame.file ? `, ${frame.file}:${frame.line}` : ''}`,
    data: frame,
    library: frame.library,
  }));
  const root: FlameNode = { name: stacks.name, value: 0, children: [] };
  stacks.frames.forEach((frame, i) => {
    const parent = frame.parent === null ? root : nodes[frame.parent]!;
    parent.children.push(nodes[i]!);
    if (parent === root) {
      root.value += nodes[i]!.value;
    }
  });
  return root;
}

/** A frame whose file has no folders. */
const shortFrame = (text: string): string => text.replace(/^.*[/\\](?=[^/\\]+\(\d+\): )/, '');
