import { fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../../tests/golden/payloads/memory.json';
import { draw, serveGoldens, textOf } from '../../../testing/view';
import { SnapshotFit } from './SnapshotFit';
import { RankPeaks } from './RankPeaks';

serveGoldens(golden);

it('shows a row per rank with its categories, and which one differs', async () => {
  draw(<RankPeaks selectors={{ run: 'snapshots' }} />);
  const ranks = golden['memory/ranks'];
  await waitFor(() =>
    expect(document.querySelector('[data-part=ranks-headline]')?.textContent?.replaceAll('\u00a0', ' ')).toBe(
      textOf(ranks.headline),
    ),
  );
  const rows = [...document.querySelectorAll('tbody tr')];
  expect(rows.map(row => row.querySelector('button')!.textContent)).toEqual(
    ranks.rows.map(row => row.worker),
  );
  for (const [i, row] of ranks.rows.entries()) {
    expect(rows[i]!.querySelectorAll('i')).toHaveLength(Object.keys(row.categories).length);
  }
});

it('says what to record where one recording is all there is', () => {
  draw(<SnapshotFit selectors={{ run: 'snapshots' }} base={null} hasOthers={false} />);
  expect(document.querySelector('[data-part=fit-missing]')!.textContent).toContain('second batch size');
});

it('answers what will fit once both batch sizes are known', async () => {
  draw(
    <SnapshotFit
      selectors={{ run: 'snapshots' }}
      base={{ base_run: 'snapshots', base_worker: 'rank1' }}
      hasOthers
    />,
  );
  expect(screen.getByText('Enter the batch sizes of both recordings.')).toBeTruthy();
  fireEvent.change(screen.getByLabelText('Batch size here'), { target: { value: '16' } });
  fireEvent.change(screen.getByLabelText('Batch size there'), { target: { value: '8.5' } });
  expect(screen.getByText('Enter the batch sizes of both recordings.')).toBeTruthy();
  fireEvent.change(screen.getByLabelText('Batch size there'), { target: { value: '8' } });
  await waitFor(() =>
    expect(document.querySelector('[data-part=fit]')!.textContent).toContain(
      textOf(golden['memory/fit'].headline),
    ),
  );
});
