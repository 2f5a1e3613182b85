/** Replaces `startWorker.ts` in a report: a page opened from disk may not start a worker. */
export const startWorker = (): Worker | null => null;
