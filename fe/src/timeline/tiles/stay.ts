/** In a report, in the place of `start.ts`: a page from disk may start no worker. */
export const startWorker = (): Worker | null => null;
