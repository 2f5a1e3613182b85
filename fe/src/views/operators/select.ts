// What the operator table says in words, and how its rows are named in the address.
import type { OperatorRow, OperatorsPayload, OperatorStacks } from '../../api/types';
import { formatDuration, formatRatio } from '../../base/format';
import type { FlameNode } from '../../widgets/charts/FlameGraph';

/** Distinct for every row: its name, and what else the rows are grouped by. */
export function rowKey(row: OperatorRow): string {
  const more = [row.input_shape, row.input_types, row.input_strides, row.module, row.annotation].filter(
    value => value !== null && value !== undefined,
  );
  return [row.name, ...more].join(' | ');
}

export interface Sentence {
  mark: string;
  after: string;
  why: string;
}

export const hasDevice = (payload: OperatorsPayload): boolean => payload.totals.device_self_ns !== null;

const SHARE = 0.6;
const MOST = 3;

/** The few operators that take most of the time. */
export function sentence(payload: OperatorsPayload): Sentence | null {
  const device = hasDevice(payload) && (payload.totals.device_self_ns ?? 0) > 0;
  const time = (row: OperatorRow) => (device ? (row.device_self_ns ?? 0) : row.host_self_ns);
  const whole = device ? payload.totals.device_self_ns! : payload.totals.host_self_ns;
  if (whole === 0) {
    return null;
  }
  const sorted = [...payload.rows].sort((a, b) => time(b) - time(a));
  const top: OperatorRow[] = [];
  let sum = 0;
  for (const row of sorted) {
    if (top.length === MOST || sum >= SHARE * whole) {
      break;
    }
    top.push(row);
    sum += time(row);
  }
  const names = [...new Set(top.map(row => row.name.replace(/^aten::/, '')))];
  const what = device ? 'device time' : 'host time';
  const said =
    names.length > 1 ? `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}` : names[0]!;
  const cores = device ? coreShare(payload) : '';
  return {
    mark: said,
    after: ` ${names.length > 1 ? 'take' : 'takes'} ${formatRatio(sum / whole)} of the ${what} of all operators${cores}.`,
    why: `${formatDuration(payload.totals.host_self_ns)} on the host${
      device ? `, ${formatDuration(whole)} on the device` : ''
    }`,
  };
}

function coreShare(payload: OperatorsPayload): string {
  const eligible = payload.rows.filter(row => row.tc_eligible && (row.device_self_ns ?? 0) > 0);
  const known = eligible.filter(row => row.tc_self_ratio !== null);
  if (eligible.length === 0 || known.length < eligible.length) {
    return '';
  }
  const time = known.reduce((sum, row) => sum + row.device_self_ns!, 0);
  const used = known.reduce((sum, row) => sum + row.device_self_ns! * row.tc_self_ratio!, 0);
  return `; ${formatRatio(used / time)} of what could run on Tensor Cores does`;
}

/** The merged stacks as a tree; `time` chooses the width. */
export function flame(stacks: OperatorStacks, time: 'host' | 'device'): FlameNode {
  const nodes: FlameNode[] = stacks.frames.map(frame => ({
    name: shortFrame(frame.text),
    value: time === 'host' ? frame.host_ns : frame.device_ns,
    children: [],
    note: `${frame.calls.toLocaleString('en-US')} calls${frame.file ? `, ${frame.file}:${frame.line}` : ''}`,
    data: frame,
  }));
  const root: FlameNode = { name: stacks.name, value: 0, children: [] };
  stacks.frames.forEach((frame, i) => {
    const parent = frame.parent === null ? root : nodes[frame.parent]!;
    parent.children.push(nodes[i]!);
    if (parent === root) {
      root.value += nodes[i]!.value;
    }
  });
  nodes.forEach(node => node.children.sort((a, b) => b.value - a.value));
  root.children.sort((a, b) => b.value - a.value);
  return root;
}

/** A frame without the folders of its file. */
const shortFrame = (text: string): string => text.replace(/^.*[/\\](?=[^/\\]+\(\d+\): )/, '');
