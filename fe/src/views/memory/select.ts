// What the Memory page says in words.
import type { MemoryDevice, MemoryGrowth, MemoryLive, MemoryPayload } from '../../api/types';
import { formatBytes, formatCount, formatRatio } from '../../base/format';

export interface Sentence {
  before: string;
  mark: string;
  after: string;
  why: string;
}

/** The peak, how much of the device it is, and who holds most of it. */
export function sentence(device: MemoryDevice, atPeak: MemoryLive | undefined): Sentence {
  const peak = device.peak_allocated_bytes;
  const counts = `${formatCount(device.allocations)} allocations on ${device.name}`;
  const unreleased =
    device.unreleased === null
      ? ''
      : device.unreleased === 0
        ? '; all are released before the trace ends'
        : `; ${formatCount(device.unreleased)} are not released before the trace ends`;
  const fragmentation = device.fragmentation
    ? `. At worst the allocator holds ${formatBytes(device.fragmentation.bytes)} that no tensor uses`
    : '';
  const why = `${counts}${unreleased}${fragmentation}.`;
  if (peak === null) {
    return {
      before: 'The trace allocates ',
      mark: formatBytes(device.allocated_in_trace_bytes),
      after: ' in all; how much was in use at once is not recorded.',
      why,
    };
  }
  const share =
    device.capacity_bytes === null
      ? ''
      : `, ${formatRatio(peak / device.capacity_bytes)} of the ${device.name.startsWith('GPU') ? 'GPU' : 'device'}`;
  const top = atPeak?.rows[0];
  const older = atPeak?.older_bytes ?? 0;
  const most =
    top && top.bytes > older && top.name
      ? `; ${top.name} holds ${formatBytes(top.bytes)} of it.`
      : older > 0
        ? `; ${formatBytes(older)} of it is from before the trace.`
        : '.';
  return { before: 'Memory peaks at ', mark: `${formatBytes(peak)}${share}`, after: most, why };
}

/** The growth of a device, and what the page warns of. */
export function leak(
  payload: MemoryPayload,
  device: string,
): { growth: MemoryGrowth | undefined; warning: string | null } {
  const growth = payload.growth.find(each => each.device === device);
  if (!growth?.growing || growth.per_step_bytes === null) {
    return { growth, warning: null };
  }
  const [top] = growth.holders;
  const holder = top ? ` ${top.name ?? 'Code outside of operators'} holds most of the growth.` : '';
  return {
    growth,
    warning: `It may leak: live memory is larger at the end of every step, by ${formatBytes(growth.per_step_bytes)} a step.${holder}`,
  };
}
