// Tiles by level of detail: visible ones are fetched and cached; a missing one is drawn from coarser or finer tiles
// until it arrives.

/** Buckets per tile; a window is a few tiles wide. */
export const TILE_BUCKETS = 1024;
const MAX_CACHED_TILES = 160;
const MAX_REQUESTS = 4;
const MAX_COARSER_LEVELS = 12;

export interface Span {
  begin: number;
  end: number;
}

/** A part of the window and the tile to draw there. */
export interface Cover<T> extends Span {
  data: T;
}

/** Return the level for a zoom: ns per bucket, a power of two, at most one pixel. */
export function levelOf(nsPerPixel: number): number {
  return 2 ** Math.max(0, Math.floor(Math.log2(Math.max(nsPerPixel, 1))));
}

export class TileStore<T> {
  private readonly cached = new Map<string, T>();
  private readonly pending = new Map<string, AbortController>();
  private readonly failed = new Set<string>();

  constructor(
    private readonly fetch: (begin: number, end: number, signal: AbortSignal) => Promise<T>,
    private readonly extent: Span,
    private readonly onArrival: () => void,
    private readonly onError: (error: unknown) => void,
  ) {}

  get loading(): boolean {
    return this.pending.size > 0;
  }

  /** Request the tiles of a window at a level, those near its middle first; other pending requests are aborted. */
  request(window: Span, level: number): void {
    const span = TILE_BUCKETS * level;
    const from = Math.floor(Math.max(window.begin, this.extent.begin) / span);
    const to = Math.floor(Math.min(window.end, this.extent.end) / span);
    const middle = (window.begin + window.end) / 2 / span - 0.5;
    const indices = Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i).sort(
      (a, b) => Math.abs(a - middle) - Math.abs(b - middle),
    );
    const keys = new Set(indices.map(index => `${level}/${index}`));
    for (const [key, controller] of this.pending) {
      if (!keys.has(key)) {
        controller.abort();
        this.pending.delete(key);
      }
    }
    for (const index of indices) {
      const key = `${level}/${index}`;
      if (
        this.pending.size >= MAX_REQUESTS ||
        this.cached.has(key) ||
        this.pending.has(key) ||
        this.failed.has(key)
      ) {
        continue;
      }
      void this.load(key, index * span, (index + 1) * span);
    }
  }

  private async load(key: string, begin: number, end: number): Promise<void> {
    const controller = new AbortController();
    this.pending.set(key, controller);
    try {
      const data = await this.fetch(begin, end, controller.signal);
      this.addToCache(key, data);
    } catch (error) {
      if (!controller.signal.aborted) {
        this.failed.add(key);
        this.onError(error);
      }
    } finally {
      if (this.pending.get(key) === controller) {
        this.pending.delete(key);
      }
      this.onArrival();
    }
  }

  private addToCache(key: string, data: T): void {
    this.cached.set(key, data);
    for (const oldest of this.cached.keys()) {
      if (this.cached.size <= MAX_CACHED_TILES) {
        break;
      }
      this.cached.delete(oldest);
    }
  }

  private find(level: number, index: number): T | undefined {
    const key = `${level}/${index}`;
    const data = this.cached.get(key);
    if (data !== undefined) {
      // Most recently used last.
      this.cached.delete(key);
      this.cached.set(key, data);
    }
    return data;
  }

  /** Return what to draw in a window: tiles of the level, else the next coarser, else the next finer. */
  cover(window: Span, level: number): Cover<T>[] {
    const span = TILE_BUCKETS * level;
    const covers: Cover<T>[] = [];
    const begin = Math.max(window.begin, this.extent.begin);
    const end = Math.min(window.end, this.extent.end);
    for (let index = Math.floor(begin / span); index * span <= end; index++) {
      const part = { begin: index * span, end: (index + 1) * span };
      const data = this.find(level, index);
      if (data !== undefined) {
        covers.push({ ...part, data });
      } else {
        covers.push(...this.substitutes(part, level));
      }
    }
    return covers;
  }

  private substitutes(part: Span, level: number): Cover<T>[] {
    for (let up = 1; up <= MAX_COARSER_LEVELS; up++) {
      const coarse = level * 2 ** up;
      const data = this.find(coarse, Math.floor(part.begin / (TILE_BUCKETS * coarse)));
      if (data !== undefined) {
        return [{ ...part, data }];
      }
    }
    for (let down = 1; down <= 2 && level / 2 ** down >= 1; down++) {
      const fine = level / 2 ** down;
      const span = TILE_BUCKETS * fine;
      const covers = [];
      for (let index = part.begin / span; index * span < part.end; index++) {
        const data = this.find(fine, index);
        if (data !== undefined) {
          covers.push({ begin: index * span, end: (index + 1) * span, data });
        }
      }
      if (covers.length > 0) {
        return covers;
      }
    }
    return [];
  }
}
