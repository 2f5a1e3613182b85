// What one frame of the timeline is drawn from, and what the pointer finds in it.
import type { Highlight } from '../contract';
import type { Cover, Span } from '../tiles/store';
import type { Samples, Tile } from '../tiles/tile';
import type { Palette } from './colors';
import type { Layout } from './layout';

export interface Scene {
  width: number;
  height: number;
  window: Span;
  /** The instant that the ruler and the grid count from, ns. */
  origin: number;
  layout: Layout;
  scroll: number;
  palette: Palette;
  tiles: Cover<Tile>[];
  samples: Cover<Samples>[];
  /** The tiles of the device tracks that show idle time by cause. */
  blame: Cover<Tile>[];
  names: ReadonlyMap<number, string>;
  /** Slices drawn at full opacity; the others are dimmed. */
  highlight: Highlight | null;
}

/** The slice, or the merged slices, under the pointer. */
export interface Hit {
  event: number;
  count: number;
  start: number;
  duration: number;
  busy: number;
  name: number;
  color: number;
}
