import { screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../tests/golden/payloads/overview.json';
import { draw, serveGoldens } from '../testing/view';
import { IdleShare } from './Nav';

serveGoldens(golden);

it('shows the idle share beside the Idle tab', async () => {
  draw(<IdleShare selectors={{ run: 'run' }} />);
  expect((await screen.findByTitle(/the device is idle/)).textContent).toBe('50%');
});
