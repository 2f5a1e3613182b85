// Types that the page and the timeline's controller share.
import type { TracePayload } from '../api/types';
import type { Arrow, SlicePlace } from './draw/overlay';
import type { Span } from './tiles/store';
import type { Samples, Tile } from './tiles/tile';

/** Names by code: full names, and short names of kernels. */
export interface TileNames {
  names: Record<string, string>;
  short_names: Record<string, string>;
}

export interface TileSource {
  tile(begin: number, end: number, width: number, signal: AbortSignal): Promise<Tile>;
  counters(begin: number, end: number, width: number, signal: AbortSignal): Promise<Samples>;
  /** Causes of the devices' idle time; requested once the slices are loaded and the track is visible. */
  blame?(begin: number, end: number, width: number, signal: AbortSignal): Promise<Tile>;
  names(codes: number[]): Promise<TileNames>;
}

export interface ControllerEvents {
  /** Called when the window has come to rest. */
  onWindow: (window: Span) => void;
  onLoading: (loading: boolean) => void;
  onError: (error: unknown) => void;
}

/** The device and the category of its time under the pointer. */
export interface Blame {
  device: number;
  category: string;
}

/** What the page draws over the slices and which slices it highlights. */
export interface Highlights {
  area: Span | null;
  marks: readonly number[];
  selected: SlicePlace | null;
  arrows: readonly Arrow[];
  highlight: Highlight | null;
  /** Operations on several tracks; their places are looked up in the tiles. */
  joinedEvents?: readonly JoinedEvent[];
}

/** Return whether a slice or a merged box is highlighted; all others fade. Times in ns. */
export type Highlight = (
  track: TracePayload['tracks'][number],
  event: number,
  start: number,
  end: number,
  depth: number,
) => boolean;

/** Events on several tracks that are one operation, such as a collective. */
export interface JoinedEvent {
  ends: readonly { event: number; start: number; duration: number; tracks: readonly number[] }[];
  strong: boolean;
}
