import { fireEvent, screen } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import golden from '../../../../../tests/golden/payloads/trace.json';
import { drawView, serveGoldens } from '../../../testing/view';
import View from '..';

const PERFETTO = 'https://ui.perfetto.dev';
serveGoldens(golden);

/** Stand in for Perfetto's page, which answers a ping, and for the files; return what is fetched and posted. */
function servePerfetto() {
  const fetched: string[] = [];
  const answer = fetch;
  vi.stubGlobal('fetch', (address: URL | string) => {
    if (!/\/(download|slice)\?/.test(String(address))) {
      return answer(address);
    }
    fetched.push(String(address));
    return Promise.resolve(new Response('a trace'));
  });
  const postMessage = vi.fn((message: unknown) => {
    if (message === 'PING') {
      window.dispatchEvent(new MessageEvent('message', { origin: PERFETTO, data: 'PONG' }));
    }
  });
  vi.spyOn(window, 'open').mockReturnValue({ postMessage } as never);
  return { fetched, postMessage };
}

it.each([
  [true, /\/download\?/],
  [false, /\/slice\?/],
])(
  'hands Perfetto the file if it can read it (%s), else the whole trace as it can',
  async (perfetto, address) => {
    vi.spyOn(console, 'warn').mockImplementation(() => {}); // nothing is laid out here that could take the focus
    const { fetched, postMessage } = servePerfetto();
    drawView(View, { ...golden.trace, perfetto });
    fireEvent.click(screen.getByRole('button', { name: /Perfetto/ }));
    fireEvent.click(await screen.findByRole('button', { name: 'Entire trace' }));
    await screen.findByText('Opened.');
    expect(window.open).toHaveBeenCalledExactlyOnceWith(PERFETTO);
    expect(fetched).toEqual([expect.stringMatching(address)]);
    expect(fetched[0]).not.toContain('begin');
    const [message, target, [buffer]] = postMessage.mock.calls.at(-1) as unknown as [
      { perfetto: { buffer: ArrayBuffer } },
      string,
      [ArrayBuffer],
    ];
    expect(target).toBe(PERFETTO);
    expect(new TextDecoder().decode(buffer)).toBe('a trace');
    expect(message.perfetto.buffer).toBe(buffer);
  },
);
