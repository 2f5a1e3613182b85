import { screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import { draw, serveGoldens } from '../testing/view';
import { HealthDrawer } from './HealthDrawer';

serveGoldens({});

it('says what is wrong with the log folders', async () => {
  const renamed = "several log folders have a run 'job': each is shown with its folder in front";
  draw(<HealthDrawer run="a/job" problems={[renamed]} others={null} open onClose={() => undefined} />);
  expect(await screen.findByText(renamed)).toBeTruthy();
});

it('does not speak of log folders in which nothing is wrong', async () => {
  draw(<HealthDrawer run="job" problems={[]} others={null} open onClose={() => undefined} />);
  expect(await screen.findByText(/Trace health/)).toBeTruthy();
  expect(screen.queryByText('Log folders')).toBeNull();
});

it('names the files of other tools with what opens them', async () => {
  const files = ['a/x.nsys-rep', 'b/y.nsys-rep', 'c/z.nsys-rep'];
  const kind = { kind: 'Nsight Systems report', advice: 'open it with Nsight Systems', count: 3, files };
  const others = { headline: '3 files of other tools', kinds: [kind] };
  draw(<HealthDrawer run="job" problems={[]} others={others} open onClose={() => undefined} />);
  expect(await screen.findByRole('heading', { name: '3 files of other tools' })).toBeTruthy();
  expect(screen.getByText(/Nsight Systems report: open it with Nsight Systems/).textContent).toContain(
    'a/x.nsys-rep and 2 more',
  );
});
