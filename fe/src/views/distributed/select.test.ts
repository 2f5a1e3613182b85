import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/distributed.json';
import type { DistributedPayload } from '../../api/types';
import { groupByHost, isHostRow } from './select';

const payload = golden.distributed as unknown as DistributedPayload;
const first = payload.stragglers[0]!;

const job = (hosts: (string | null)[], costs: number[], late: [string, number, number, boolean][] = []) => ({
  ...payload,
  late_hosts: late.map(([host, ranks, cost_ns, together]) => ({ host, ranks, cost_ns, together })),
  stragglers: hosts.map((host, rank) => ({
    ...first,
    worker: `w${rank}`,
    rank,
    host,
    cost_ns: costs[rank]!,
  })),
});

const names = (payload: DistributedPayload, listed = 8) =>
  groupByHost(payload, listed).map(row =>
    isHostRow(row) ? `${row.host} ${row.ranks} ${row.cost_ns}` : row.worker,
  );

it('lists the ranks of a node below it, the node of the costliest rank first', () => {
  expect(
    names(
      job(
        ['b', 'a', 'b', 'a'],
        [9, 5, 3, 1],
        [
          ['b', 2, 9, false],
          ['a', 2, 5, false],
        ],
      ),
    ),
  ).toEqual(['b 2 9', 'w0', 'w2', 'a 2 5', 'w1', 'w3']);
});

it('says of a node what the server says of all its ranks', () => {
  const payload = job(
    ['a', 'a', 'b'],
    [2, 2, 0],
    [
      ['a', 2, 7, true],
      ['b', 900, 0, false],
    ],
  );
  expect(names(payload)).toEqual(['a 2 7', 'w0', 'w1', 'b 900 0', 'w2']);
});

it('groups nothing where the server names no hosts', () => {
  expect(names(job([null, null, null], [3, 2, 1]))).toEqual(['w0', 'w1', 'w2']);
  expect(names(job(['a', 'a', 'a'], [3, 2, 1]))).toEqual(['w0', 'w1', 'w2']);
});

it('leaves a rank without a host, and a host with one rank, alone', () => {
  expect(names(job([null, 'a', 'b', 'b'], [4, 3, 2, 1], [['b', 2, 2, false]]))).toEqual([
    'w0',
    'w1',
    'b 2 2',
    'w2',
    'w3',
  ]);
});

it('counts all ranks of a node, also those that are not listed', () => {
  expect(names(job(['a', 'b', 'b', 'b'], [4, 3, 2, 1], [['b', 3, 3, false]]), 2)).toEqual([
    'w0',
    'b 3 3',
    'w1',
  ]);
});
