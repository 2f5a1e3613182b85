import { fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import golden from '../../../../../tests/golden/payloads/trace.json';
import { drawView, serveGoldens } from '../../../testing/view';
import View from '..';
import { openInPerfetto } from './perfetto';

vi.mock('./perfetto', () => ({ openInPerfetto: vi.fn(() => Promise.resolve('Opened.')) }));
serveGoldens(golden);

it.each([
  [true, /\/download\?/],
  [false, /\/slice\?/],
])(
  'hands Perfetto the file if it can read it (%s), else the whole trace as it can',
  async (perfetto, address) => {
    vi.mocked(openInPerfetto).mockClear();
    vi.spyOn(console, 'warn').mockImplementation(() => {}); // nothing is laid out here that could take the focus
    drawView(View, { ...golden.trace, perfetto });
    fireEvent.click(screen.getByRole('button', { name: /Perfetto/ }));
    fireEvent.click(await screen.findByRole('button', { name: 'Entire trace' }));
    await waitFor(() => expect(openInPerfetto).toHaveBeenCalledOnce());
    const opened = vi.mocked(openInPerfetto).mock.calls[0]![0];
    expect(opened).toMatch(address);
    expect(opened).not.toContain('begin');
  },
);
