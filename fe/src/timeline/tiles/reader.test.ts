import { describe, expect, it } from 'vitest';
import { ApiError, type Client } from '../../api/client';
import type { WorkerRequest, WorkerReply } from './fetch';
import { TileReader } from './reader';

const base64 = (numbers: Int32Array | Uint32Array | Uint16Array) =>
  btoa(String.fromCharCode(...new Uint8Array(numbers.buffer)));

const WIRE = {
  begin_ns: 1000,
  end_ns: 2000,
  resolution_ns: 1,
  unit_ns: 2,
  lane_track: [3],
  lane_depth: [0],
  lane_first: [0, 1],
  start: base64(new Int32Array([5])),
  duration: base64(new Int32Array([7])),
  busy: base64(new Int32Array([7])),
  count: base64(new Uint32Array([1])),
  event: base64(new Int32Array([9])),
  name: base64(new Int32Array([0])),
  color: base64(new Uint16Array([2])),
  names: { 0: 'aten::mm' },
  short_names: {},
};

const client = {
  view: async (slug: string) => {
    expect(slug).toBe('trace/tile');
    return { state: 'ready', payload: WIRE };
  },
  address: () => 'http://host/data/plugin/pytorch_profiler/',
} as unknown as Client;

class FakeWorker extends EventTarget {
  messages: WorkerRequest[] = [];
  postMessage(message: WorkerRequest) {
    this.messages.push(message);
  }
  reply(reply: WorkerReply) {
    this.dispatchEvent(new MessageEvent('message', { data: reply }));
  }
}

const neverAborted = () => new AbortController().signal;

describe('the reader', () => {
  it('decodes by itself where there is no worker', async () => {
    const tile = await new TileReader(null).tile(client, {}, {}, neverAborted());
    expect([...tile.start]).toEqual([1010]);
    expect([...tile.duration]).toEqual([14]);
    expect(tile.names.get(0)).toBe('aten::mm');
  });

  it('leaves all to the worker, and matches its replies by number', async () => {
    const worker = new FakeWorker();
    const reader = new TileReader(worker as unknown as Worker);
    const first = reader.tile(client, { run: 'a' }, { begin: '0' }, neverAborted());
    const second = reader.counters(client, { run: 'a' }, { begin: '0' }, neverAborted());
    expect(worker.messages).toMatchObject([
      { id: 1, base: client.address('', {}), request: { part: 'tile', selectors: { run: 'a' } } },
      { id: 2, request: { part: 'counters', params: { begin: '0' } } },
    ]);
    const info = { code: 'usage', message: 'no window', hint: null, where: null, stage: null };
    worker.reply({ id: 2, message: 'no window', refused: { status: 400, info } });
    worker.reply({ id: 1, data: 'the tile' as never });
    expect(await first).toBe('the tile');
    await expect(second).rejects.toEqual(new ApiError(400, info));
  });

  it('tells the worker what is no longer wanted', () => {
    const worker = new FakeWorker();
    const controller = new AbortController();
    void new TileReader(worker as unknown as Worker).tile(client, {}, {}, controller.signal);
    controller.abort();
    expect(worker.messages[1]).toEqual({ id: 1, abort: true });
  });

  it('does the work itself when the worker cannot start', async () => {
    const worker = new FakeWorker();
    const reader = new TileReader(worker as unknown as Worker);
    const answer = reader.tile(client, {}, {}, neverAborted());
    worker.dispatchEvent(new Event('error'));
    expect([...(await answer).start]).toEqual([1010]);
    expect([...(await reader.tile(client, {}, {}, neverAborted())).event]).toEqual([9]);
    expect(worker.messages).toHaveLength(1);
  });
});
