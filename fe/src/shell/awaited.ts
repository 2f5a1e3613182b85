// A link may name a run, a worker or a span that isn't written yet.
import type { RunInfo, WorkerInfo } from '../api/types';
import type { Selection } from '../state/selection';

export interface AwaitedTarget {
  kind: 'run' | 'worker' | 'span';
  name: string;
  /** What there is of its kind. */
  present: string[];
}

/** Return what the address names and the lists don't have; null if nothing is missing, or a list isn't known yet. */
export function awaitedTarget(
  { run, worker, span }: Pick<Selection, 'run' | 'worker' | 'span'>,
  runs: readonly RunInfo[] | undefined,
  workers: readonly WorkerInfo[] | undefined,
): AwaitedTarget | null {
  if (!runs) {
    return null;
  }
  if (run !== undefined && !runs.some(({ name }) => name === run)) {
    return { kind: 'run', name: run, present: runs.map(({ name }) => name) };
  }
  if (!workers || workers.length === 0) {
    return null;
  }
  const found = worker === undefined ? workers[0]! : workers.find(({ name }) => name === worker);
  if (!found) {
    return { kind: 'worker', name: worker!, present: workers.map(({ name }) => name) };
  }
  if (span !== undefined && !found.spans.some(({ name }) => name === span)) {
    return { kind: 'span', name: span, present: found.spans.map(({ name }) => name) };
  }
  return null;
}
