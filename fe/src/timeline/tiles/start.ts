/** The worker of the reader; null where the host forbids workers. */
export function startWorker(): Worker | null {
  try {
    return new Worker(new URL('./reader.worker.ts', import.meta.url), { type: 'module' });
  } catch {
    return null;
  }
}
