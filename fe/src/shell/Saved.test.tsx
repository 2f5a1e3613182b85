// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core';
import { fireEvent, render, screen } from '@testing-library/react';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Client } from '../api/client';
import { saveFile } from '../base/browser/save';
import { ClientContext } from '../state/queries';
import { Saved } from './Saved';

function draw(client: Partial<Client>) {
  vi.spyOn(URL, 'createObjectURL').mockReturnValue('blob:x');
  render(
    <MantineProvider env="test">
      <ClientContext value={{ report: null, ...client } as Client}>
        <Saved />
      </ClientContext>
    </MantineProvider>,
  );
}

test('a download that may be blocked is offered to the server, which says where it is', async () => {
  const save = vi.fn<Client['save']>(() => Promise.resolve({ file: '/log/saved/1.csv' }));
  draw({ save });
  expect(screen.queryByRole('status')).toBeNull();
  saveFile('rows.csv', 'a,b', 'text/csv');
  fireEvent.click(await screen.findByRole('button', { name: 'Save into the log folder' }));
  expect((await screen.findByText(/Saved as/)).textContent).toBe('Saved as /log/saved/1.csv');
  const [kind, blob] = save.mock.calls[0]!;
  expect([kind, await blob.text()]).toEqual(['csv', 'a,b']);
});

test('a server that refuses says why, and a report has no server', async () => {
  draw({ save: () => Promise.reject(new Error('the log folder is read-only')) });
  saveFile('chart.png', 'x', 'image/png');
  fireEvent.click(await screen.findByRole('button', { name: 'Save into the log folder' }));
  expect(await screen.findByText('the log folder is read-only')).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Copy it' })).toBeNull();
});

test.each([
  [true, 'Copied.'],
  [false, 'The browser blocked copying.'],
])('that copying is allowed (%s) is what it says of it', async (allowed, said) => {
  vi.stubGlobal('navigator', {
    clipboard: { writeText: () => (allowed ? Promise.resolve() : Promise.reject(new Error('denied'))) },
  });
  document.execCommand = () => false;
  onTestFinished(() => void Reflect.deleteProperty(document, 'execCommand'));
  draw({});
  saveFile('rows.csv', 'a,b', 'text/csv');
  fireEvent.click(await screen.findByRole('button', { name: 'Copy it' }));
  expect(await screen.findByText(said)).toBeTruthy();
});
