import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { embeddedClient, type Report } from './embedded';

const packed = (body: unknown) => gzipSync(JSON.stringify(body)).toString('base64');

const NAMES = { run: 'b', worker: 'w <b>', span: '1' };
const OF_RUN = { run: 'b', span: '1' };

const report: Report = {
  made: 'today',
  version: '1',
  root: 'log',
  command: 'torch-tb-profiler serve log',
  left_out: [],
  recordings: [NAMES, { run: 'a', worker: 'v', span: '2' }],
  entries: [
    ['view/operators', NAMES, 0],
    ['view/operators', { ...NAMES, group_by: 'shape', step: '3' }, 1],
    ['view/distributed', OF_RUN, 2],
    ['view/trace/tile', { ...NAMES, color: 'class' }, 3],
    ['view/idle', NAMES, 4],
    ['workers', { run: 'b' }, 5],
    ['view/operators', { run: 'a', worker: 'v', span: '2' }, 6],
  ],
  answers: [
    [200, packed('all')],
    [200, packed('grouped')],
    [200, packed('job')],
    [200, packed('tile')],
    [404, packed({ error: { code: 'not_found', message: 'nothing recorded' } })],
    [200, packed('workers')],
    [200, packed('of a')],
  ],
};

const client = embeddedClient(report);

describe('the answers in a report', () => {
  it('are found by what is asked, whatever the order', async () => {
    expect(await client.view('operators', NAMES, {})).toBe('all');
    expect(await client.view('operators', NAMES, { step: '3', group_by: 'shape' })).toBe('grouped');
    expect(await client.workers('b')).toBe('workers');
  });

  it('belong to the first trace that has the names which are given', async () => {
    expect(await client.view('operators', {}, {})).toBe('all');
    expect(await client.view('operators', { run: 'a', worker: undefined }, {})).toBe('of a');
  });

  it('of a run are the same for all of its workers', async () => {
    expect(await client.view('distributed', { run: 'b', span: '1', worker: 'other' }, {})).toBe('job');
  });

  it('about the whole timeline stand for its windows, in their color only', async () => {
    const window = { begin: '5', end: '9', width: '1024' };
    expect(await client.view('trace/tile', {}, { ...window, color: 'class' })).toBe('tile');
    await expect(client.view('trace/tile', {}, { ...window, color: 'module' })).rejects.toThrow('not part');
  });

  it('are the refusals that the routes gave, too', async () => {
    await expect(client.view('idle', {}, {})).rejects.toMatchObject({
      status: 404,
      info: { message: 'nothing recorded' },
    });
  });

  it('that are not there are said to be missing, with the command that has them', async () => {
    await expect(client.view('operators', {}, { step: '4' })).rejects.toMatchObject({
      message: 'this is not part of this report',
      info: { hint: '`torch-tb-profiler serve log` opens all of it.' },
    });
    await expect(client.view('operators', { worker: 'rank3' }, {})).rejects.toThrow(
      'b · rank3 · span 1 is not part of this report',
    );
  });
});
