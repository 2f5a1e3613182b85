// The worker's side of the reader.
import { ApiError, httpClient } from '../../api/client';
import { fetchTile, type WorkerRequest, type WorkerReply } from './fetch';

const open = new Map<number, AbortController>();
const post = (reply: WorkerReply, buffers: Transferable[] = []) =>
  self.postMessage(reply, { transfer: buffers });

self.addEventListener('message', async ({ data: order }: MessageEvent<WorkerRequest>) => {
  if ('abort' in order) {
    open.get(order.id)?.abort();
    return;
  }
  const { id, base, question } = order;
  const controller = new AbortController();
  open.set(id, controller);
  try {
    const data = await fetchTile(httpClient(new URL(base)), question, controller.signal);
    const columns = Object.values(data).filter(value => ArrayBuffer.isView(value));
    post({ id, data }, [...new Set(columns.map(column => column.buffer))]);
  } catch (error) {
    const refused = error instanceof ApiError ? { status: error.status, info: error.info } : null;
    post({ id, message: error instanceof Error ? error.message : String(error), refused });
  } finally {
    open.delete(id);
  }
});
