// What the timeline says in words, and which tracks stand for all in the strip above it.
import type { TracePayload, TraceSelection } from '../../api/types';
import { formatRatio } from '../../base/format';
import { sliceName, spokenName } from '../../base/kernelName';
import { classColor } from '../../timeline/draw/colors';
import type { Span } from '../../timeline/tiles/store';

export interface Sentence {
  before: string;
  mark: string;
  after: string;
  color: string;
  why: string;
}

/** How the stretch in sight is spent: by the busiest device, else by the name with the most self time. */
export function sentence(payload: TracePayload, inSight: TraceSelection | undefined, window: Span): Sentence {
  const blank = { before: 'What ran where, and when.', mark: '', after: '', color: '', why: '' };
  if (!inSight || inSight.slices === 0) {
    return inSight ? { ...blank, before: 'Nothing ran in this stretch.' } : blank;
  }
  const top = inSight.rows[0];
  const said = (row: TraceSelection['rows'][number]) =>
    spokenName(sliceName(row.name, payload.classes[row.colour]));
  const length = Math.max(Math.min(window.end, payload.end_ns) - Math.max(window.begin, payload.begin_ns), 1);
  const slices = `; ${inSight.slices.toLocaleString('en-US')} slices of ${inSight.names.toLocaleString('en-US')} names`;
  const device = [...inSight.devices].sort((a, b) => b.busy_ns - a.busy_ns)[0];
  if (device) {
    const share = Math.min(device.busy_ns / length, 1);
    const hidden = device.communication_ns > 0 ? device.overlap_ns / device.communication_ns : null;
    return {
      before: `${label(payload, device.device)} is busy `,
      mark: `${formatRatio(share)} of this time`,
      after: top ? `; ${said(top)} takes the most.` : '.',
      color: 'var(--c-kernel)',
      why:
        hidden === null
          ? slices
          : `${slices} on the device; ${formatRatio(hidden)} of its communication lies under compute`,
    };
  }
  return {
    before: '',
    mark: top ? said(top) : '',
    after: ` takes the most time of its own here, ${formatRatio(top ? top.self_ns / length : 0)}.`,
    color: top ? classColor(payload.classes[top.colour] ?? 'other') : '',
    why: slices,
  };
}

const label = (payload: TracePayload, device: number): string =>
  payload.groups.find(group => group.device === device)?.name ?? `Device ${device}`;

const IN_STRIP = 4;

/** The tracks whose slices the sentence is about: the devices' work, else the threads. */
export function spokenTracks(payload: TracePayload): number[] {
  const work = workTracks(payload);
  const streams = work.filter(track => track.kind === 'stream' && !MIRRORED.includes(track.role));
  return (streams.length > 0 ? streams : work.filter(track => track.kind === 'thread')).map(
    track => track.id,
  );
}

const MIRRORED: readonly string[] = ['annotation', 'sync'];

/** The tracks of processes and devices, without what the profiler says of itself. */
export const workTracks = (payload: TracePayload): TracePayload['tracks'] =>
  payload.tracks.filter(track => track.group !== null && payload.groups[track.group]?.kind !== 'profiler');

/** The busiest threads and streams, in the order they are shown. */
export function mainTracks(payload: TracePayload): number[] {
  const candidates = payload.tracks.filter(
    track =>
      (track.kind === 'thread' || track.kind === 'stream') &&
      track.role !== 'annotation' &&
      track.role !== 'sync',
  );
  const chosen = new Set(
    [...candidates]
      .sort((a, b) => b.slices - a.slices)
      .slice(0, IN_STRIP)
      .map(track => track.id),
  );
  return candidates.filter(track => chosen.has(track.id)).map(track => track.id);
}
