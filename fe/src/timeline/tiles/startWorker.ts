/** Start the reader's worker; return null if the host forbids workers. */
export function startWorker(): Worker | null {
  try {
    return new Worker(new URL('./reader.worker.ts', import.meta.url), { type: 'module' });
  } catch {
    return null;
  }
}
