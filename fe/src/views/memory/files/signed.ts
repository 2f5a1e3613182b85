import { formatBytes } from '../../../base/format';

/** A difference in bytes with its sign; none has no sign. */
export const signed = (bytes: number): string =>
  `${bytes < 0 ? '−' : bytes > 0 ? '+' : ''}${formatBytes(Math.abs(bytes))}`;
