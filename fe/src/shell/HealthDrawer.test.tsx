import { screen, waitFor } from '@testing-library/react';
import { expect, it } from 'vitest';
import { draw, serveGoldens } from '../testing/view';
import { HealthDrawer } from './HealthDrawer';

serveGoldens({});

it('lists the problems of the log folders', async () => {
  const renamed = "several log folders have a run 'job', so its name starts with the folder";
  draw(<HealthDrawer run="a/job" problems={[renamed]} others={null} open onClose={() => undefined} />);
  expect(await screen.findByText(renamed)).toBeTruthy();
});

it('has no section for log folders without problems', async () => {
  draw(<HealthDrawer run="job" problems={[]} others={null} open onClose={() => undefined} />);
  expect(await screen.findByText(/Trace health/)).toBeTruthy();
  expect(screen.queryByText('Log folders')).toBeNull();
});

it('lists the files of other tools with what opens them', async () => {
  const files = ['a/x.nsys-rep', 'b/y.nsys-rep', 'c/z.nsys-rep'];
  const kind = { kind: 'Nsight Systems report', advice: 'open it with Nsight Systems', count: 3, files };
  const others = { headline: '3 files of other tools', kinds: [kind] };
  draw(<HealthDrawer run="job" problems={[]} others={others} open onClose={() => undefined} />);
  expect(await screen.findByRole('heading', { name: '3 files of other tools' })).toBeTruthy();
  expect(screen.getByText(/Nsight Systems report: open it with Nsight Systems/).textContent).toContain(
    'a/x.nsys-rep and 2 more',
  );
});

it('focuses Close when it opens, so that no hover card opens with it', async () => {
  draw(<HealthDrawer run="job" problems={[]} others={null} open onClose={() => undefined} />);
  await screen.findByText(/Trace health/);
  await waitFor(() => expect(document.activeElement?.getAttribute('aria-label')).toBe('Close'));
  // Longer than the delay after which a focused "?" opens its card.
  await new Promise(resolve => setTimeout(resolve, 300));
  expect(screen.getAllByRole('dialog')).toHaveLength(1);
});
