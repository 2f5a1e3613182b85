import { screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import { draw, serveGoldens } from '../testing/view';
import { HealthDrawer } from './HealthDrawer';

serveGoldens({});

it('says what is wrong with the log folders', async () => {
  const renamed = "several log folders have a run 'job': each is shown with its folder in front";
  draw(<HealthDrawer run="a/job" problems={[renamed]} open onClose={() => undefined} />);
  expect(await screen.findByText(renamed)).toBeTruthy();
});

it('does not speak of log folders in which nothing is wrong', async () => {
  draw(<HealthDrawer run="job" problems={[]} open onClose={() => undefined} />);
  expect(await screen.findByText(/Trace health/)).toBeTruthy();
  expect(screen.queryByText('Log folders')).toBeNull();
});
