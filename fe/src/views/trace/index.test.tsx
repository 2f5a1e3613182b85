import { fireEvent, screen, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/trace.json';
import { drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('names the tracks and its keys', () => {
  drawView(View, golden.trace);
  const names = [...document.querySelectorAll('[data-part=track-label]')].map(label => label.textContent);
  expect(names.some(name => name?.includes('thread 1'))).toBe(true);
  expect(screen.getByText(/Click a slice to see all of it/)).toBeTruthy();
});

it('says what is known of the selected slice, and where it leads', async () => {
  drawView(View, golden.trace, { params: { event: '2' } });
  const details = await screen.findByRole('heading', { level: 2, name: /aten::mm/ });
  const panel = details.closest<HTMLElement>('[data-part=event-details]')!;
  expect(within(panel).getByText('100 µs')).toBeTruthy();
  expect(document.querySelector('img')).toBeNull();
});

it('says why a device waits at a moment, what is to blame, and where all of it is', async () => {
  drawView(View, golden.trace, { params: { moment: '0:0-3000000:operator' } });
  const details = await screen.findByRole('heading', { level: 2, name: 'Operators' });
  const panel = within(details.closest<HTMLElement>('[data-part=moment-details]')!);
  const found = golden['trace/moment'];
  expect(panel.getByText(/GPU 0 waits/).textContent).toContain(found.headline[0]!.text);
  expect(panel.getByText('To blame').parentElement!.textContent).toContain(found.subject.short_name);
  expect(panel.getByRole('heading', { name: 'The whole gap' })).toBeTruthy();
  fireEvent.click(panel.getByRole('button', { name: /All idle time/ }));
  expect(decodeURIComponent(location.hash)).toContain('select=operator/');
});

it('adds up a stretch of time', async () => {
  drawView(View, golden.trace, { params: { area: '0-3000000' } });
  expect(await screen.findByRole('heading', { name: /^Selected 3\.00 ms/ })).toBeTruthy();
});
