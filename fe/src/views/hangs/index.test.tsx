import { fireEvent, screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/hangs.json';
import { drawView, serveGoldens } from '../../testing/view';
import View from '.';
import { formatRanks, pictureRows } from './select';

serveGoldens(golden);

it('names the culprit and draws the call that it never made as absent', () => {
  drawView(View, golden.hangs);
  expect(screen.getByRole('heading', { level: 1 }).textContent).toContain('Rank 2 never called all_reduce 4');
  expect(screen.getAllByText('absent')).toHaveLength(1);
  expect(screen.getByText('absent').closest('tr')!.textContent).toContain('rank 2');
  expect(screen.getAllByText('waits')).toHaveLength(7);
});

it('folds frames of libraries, and shows them on demand', () => {
  drawView(View, golden.hangs);
  expect(screen.queryByText('all_reduce', { selector: 'pre div' })).toBeNull();
  fireEvent.click(screen.getAllByRole('button', { name: /Show 1 library frame/ })[0]!);
  expect(screen.getByText(/c10d.py:1/)).toBeTruthy();
});

it('joins ranks with the same calls in a group of thousands, the culprits first', () => {
  const members = Array.from({ length: 10_000 }, (_, rank) => rank);
  const call = {
    group: '0',
    collective_seq_id: 4,
    profiling_name: 'all_reduce',
    elements: null,
    waiting: members.filter(rank => rank !== 77),
    pending: [],
    missing: [77],
    different: [],
    different_names: [],
    unseen: [],
    unknown: [],
  };
  const rows = pictureRows([call], members, [77]);
  expect(rows.map(({ ranks, culprit, cells }) => [ranks.length, culprit, cells[0]])).toEqual([
    [1, true, 'missing'],
    [9999, false, 'waiting'],
  ]);
  expect(formatRanks([0, 1, 3, 4, 5, 6, 7])).toBe('0, 1, 3 to 7');
});
