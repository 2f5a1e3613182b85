// Tiles by level of detail: what is shown is fetched, what was shown is kept a while, what is missing is drawn
// from a coarser or finer tile until it is there.

/** Buckets per tile; a window is a few tiles wide. */
export const BUCKETS = 1024;
const KEPT = 160;
const AT_ONCE = 4;
const COARSER = 12;

export interface Span {
  begin: number;
  end: number;
}

/** A part of the window and the data to draw there. */
export interface Cover<T> extends Span {
  data: T;
}

/** ns per bucket, a power of two, at most one pixel. */
export function levelOf(nsPerPixel: number): number {
  return 2 ** Math.max(0, Math.floor(Math.log2(Math.max(nsPerPixel, 1))));
}

export class TileStore<T> {
  private readonly kept = new Map<string, T>();
  private readonly pending = new Map<string, AbortController>();
  private readonly failed = new Set<string>();

  constructor(
    private readonly fetch: (begin: number, end: number, signal: AbortSignal) => Promise<T>,
    private readonly extent: Span,
    private readonly arrived: () => void,
    private readonly trouble: (error: unknown) => void,
  ) {}

  get loading(): boolean {
    return this.pending.size > 0;
  }

  /** Ask for what a window needs at a level, nearest to its middle first; other requests are dropped. */
  want(window: Span, level: number): void {
    const span = BUCKETS * level;
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
        this.pending.size >= AT_ONCE ||
        this.kept.has(key) ||
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
      this.keep(key, data);
    } catch (error) {
      if (!controller.signal.aborted) {
        this.failed.add(key);
        this.trouble(error);
      }
    } finally {
      if (this.pending.get(key) === controller) {
        this.pending.delete(key);
      }
      this.arrived();
    }
  }

  private keep(key: string, data: T): void {
    this.kept.set(key, data);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= KEPT) {
        break;
      }
      this.kept.delete(oldest);
    }
  }

  private find(level: number, index: number): T | undefined {
    const key = `${level}/${index}`;
    const data = this.kept.get(key);
    if (data !== undefined) {
      // The most recently used stand last.
      this.kept.delete(key);
      this.kept.set(key, data);
    }
    return data;
  }

  /** What to draw in a window: the tiles of the level, else the next coarser, else the next finer ones. */
  cover(window: Span, level: number): Cover<T>[] {
    const span = BUCKETS * level;
    const covers: Cover<T>[] = [];
    const begin = Math.max(window.begin, this.extent.begin);
    const end = Math.min(window.end, this.extent.end);
    for (let index = Math.floor(begin / span); index * span <= end; index++) {
      const part = { begin: index * span, end: (index + 1) * span };
      const data = this.find(level, index);
      if (data !== undefined) {
        covers.push({ ...part, data });
      } else {
        covers.push(...this.instead(part, level));
      }
    }
    return covers;
  }

  private instead(part: Span, level: number): Cover<T>[] {
    for (let up = 1; up <= COARSER; up++) {
      const coarse = level * 2 ** up;
      const data = this.find(coarse, Math.floor(part.begin / (BUCKETS * coarse)));
      if (data !== undefined) {
        return [{ ...part, data }];
      }
    }
    for (let down = 1; down <= 2 && level / 2 ** down >= 1; down++) {
      const fine = level / 2 ** down;
      const span = BUCKETS * fine;
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
