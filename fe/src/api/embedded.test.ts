import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { embeddedClient, type Report } from './embedded';

const compress = (body: unknown) => gzipSync(JSON.stringify(body)).toString('base64');

const NAMES = { run: 'b', worker: 'w <b>', span: '1' };
const RUN_NAMES = { run: 'b', span: '1' };

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
    ['view/distributed', RUN_NAMES, 2],
    ['view/trace/tile', { ...NAMES, color: 'class' }, 3],
    ['view/idle', NAMES, 4],
    ['workers', { run: 'b' }, 5],
    ['view/operators', { run: 'a', worker: 'v', span: '2' }, 6],
  ],
  answers: [
    [200, compress('all')],
    [200, compress('grouped')],
    [200, compress('job')],
    [200, compress('tile')],
    [404, compress({ error: { code: 'not_found', message: 'nothing recorded' } })],
    [200, compress('workers')],
    [200, compress('of a')],
  ],
};

const client = embeddedClient(report);

describe('the answers in a report', () => {
  it('are found by the parameters, in any order', async () => {
    expect(await client.view('operators', NAMES, {})).toBe('all');
    expect(await client.view('operators', NAMES, { step: '3', group_by: 'shape' })).toBe('grouped');
    expect(await client.workers('b')).toBe('workers');
  });

  it('belong to the first trace that has the given names', async () => {
    expect(await client.view('operators', {}, {})).toBe('all');
    expect(await client.view('operators', { run: 'a', worker: undefined }, {})).toBe('of a');
  });

  it('of a run are the same for all of its workers', async () => {
    expect(await client.view('distributed', { run: 'b', span: '1', worker: 'other' }, {})).toBe('job');
  });

  it('for the entire timeline serve its windows, in the same color only', async () => {
    const window = { begin: '5', end: '9', width: '1024' };
    expect(await client.view('trace/tile', {}, { ...window, color: 'class' })).toBe('tile');
    await expect(client.view('trace/tile', {}, { ...window, color: 'module' })).rejects.toThrow('not part');
  });

  it('include the errors of the routes', async () => {
    await expect(client.view('idle', {}, {})).rejects.toMatchObject({
      status: 404,
      info: { message: 'nothing recorded' },
    });
  });

  it('that are missing give an error with the command that opens all traces', async () => {
    await expect(client.view('operators', {}, { step: '4' })).rejects.toMatchObject({
      message: 'this selection is not part of this report',
      info: { hint: '`torch-tb-profiler serve log` opens all traces.' },
    });
    await expect(client.view('operators', { worker: 'rank3' }, {})).rejects.toThrow(
      'b · rank3 · span 1 is not part of this report',
    );
  });
});
