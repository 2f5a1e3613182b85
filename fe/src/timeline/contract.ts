// What the timeline is given and what it tells: by the page on one side, the controller on the other.
import type { TracePayload } from '../api/types';
import type { Arrow, Place } from './draw/overlay';
import type { Span } from './tiles/store';
import type { Samples, Tile } from './tiles/tile';

/** Texts by code: whole, and short of those that are names of kernels. */
export interface Names {
  names: Record<string, string>;
  short_names: Record<string, string>;
}

export interface Source {
  tile(begin: number, end: number, width: number, signal: AbortSignal): Promise<Tile>;
  counters(begin: number, end: number, width: number, signal: AbortSignal): Promise<Samples>;
  /** What the time of the devices goes to; asked for once the slices are there and the track is in sight. */
  blame?(begin: number, end: number, width: number, signal: AbortSignal): Promise<Tile>;
  names(codes: number[]): Promise<Names>;
}

export interface Events {
  /** The window has come to rest. */
  onWindow: (window: Span) => void;
  onLoading: (loading: boolean) => void;
  onTrouble: (error: unknown) => void;
}

/** What a device's time goes to where the pointer is. */
export interface Blame {
  device: number;
  category: string;
}

/** What is drawn above the slices; the page sets it. */
export interface Highlights {
  area: Span | null;
  marks: readonly number[];
  selected: Place | null;
  arrows: readonly Arrow[];
  lit: Lit | null;
  /** What happens at once on several tracks; the places are looked up among the tiles. */
  joined?: readonly Joined[];
}

/** Whether a slice, or what shares a box, stands out; all others fade. Times in ns. */
export type Lit = (
  track: TracePayload['tracks'][number],
  event: number,
  start: number,
  end: number,
  depth: number,
) => boolean;

/** Events that are one and the same operation. */
export interface Joined {
  ends: readonly { event: number; start: number; duration: number; tracks: readonly number[] }[];
  strong: boolean;
}
