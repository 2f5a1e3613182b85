// What bounds work on a device, and the color that each bound has in every view.
import type { Speed } from '../../../api/types';

export type Bound = Speed['bound'];

export const COLORS: Record<Bound, string> = {
  compute: 'var(--c-kernel)',
  memory: 'var(--c-memcpy)',
  latency: 'var(--c-dataloader)',
  launch: 'var(--c-runtime)',
  communication: 'var(--c-communication)',
  unknown: 'var(--c-other)',
};
