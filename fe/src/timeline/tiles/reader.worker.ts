// The worker's side of the reader.
import { ApiError, httpClient } from '../../api/client';
import { fetchTile, type WorkerRequest, type WorkerReply } from './fetch';

/** The requests that are being answered, by id. */
const running = new Map<number, AbortController>();
const post = (reply: WorkerReply, buffers: Transferable[] = []) =>
  self.postMessage(reply, { transfer: buffers });

self.addEventListener('message', async ({ data: message }: MessageEvent<WorkerRequest>) => {
  if ('abort' in message) {
    running.get(message.id)?.abort();
    return;
  }
  const { id, base, request } = message;
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const data = await fetchTile(httpClient(new URL(base)), request, controller.signal);
    const columns = Object.values(data).filter(value => ArrayBuffer.isView(value));
    post({ id, data }, [...new Set(columns.map(column => column.buffer))]);
  } catch (error) {
    const refused = error instanceof ApiError ? { status: error.status, info: error.info } : null;
    post({ id, message: error instanceof Error ? error.message : String(error), refused });
  } finally {
    running.delete(id);
  }
});
