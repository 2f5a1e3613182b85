// The timeline's own loop: holds the window, asks for tiles, paints when something changed and not otherwise.
import type { TracePayload } from '../api/types';
import type { Blame, Events, Highlights, Source } from './contract';
import { readPalette, type ColorBy, type Palette } from './draw/colors';
import { type Layout, rowAt, shows } from './draw/layout';
import { HEAD, paintAbove, type Above, type Band, type Place } from './draw/overlay';
import { hitTest, paint } from './draw/paint';
import type { Hit, Scene } from './draw/scene';
import { BUCKETS, levelOf, TileStore, type Span } from './tiles/store';
import type { Samples, Tile } from './tiles/tile';
import { ticks } from '../base/ticks';
import { locate, sliceInSight, slicePast, type Way } from './lookup';
import { around, clamp, opening, pan, whole, zoom } from './viewport';

const REST_MS = 250;
const NOTHING: Highlights = { area: null, marks: [], selected: null, arrows: [], lit: null };

const placeOf = ({ track, depth, hit: { start, duration } }: { track: number; depth: number; hit: Hit }) =>
  ({ track, depth, start, duration }) satisfies Place;

export class Controller {
  window: Span;
  private layout: Layout = { rows: [], height: 0 };
  private scroll = 0;
  private size = { width: 0, height: 0 };
  private highlights = NOTHING;
  private hovered: Place | null = null;
  private cursor: number | null = null;
  private palette: Palette | null = null;
  private colorBy: ColorBy = 'class';
  private theme = '';
  private origin = 0;
  private label: ((time: number) => string) | null = null;
  /** What labels say: of kernels the short name. */
  private readonly names = new Map<number, string>();
  private readonly wholeNames = new Map<number, string>();
  private tiles: TileStore<Tile>;
  private readonly samples: TileStore<Samples>;
  private readonly blame: TileStore<Tile> | null;
  private frame = 0;
  private dirty = { slices: true, above: true };
  private rest: ReturnType<typeof setTimeout> | undefined;
  private scene: Scene | null = null;
  /** Where joined events were found: track and depth stay the same at every zoom. */
  private readonly located = new Map<number, { track: number; depth: number }>();
  readonly extent: Span;

  constructor(
    private readonly host: HTMLElement,
    private readonly slices: HTMLCanvasElement,
    private readonly above: HTMLCanvasElement,
    private readonly payload: TracePayload,
    private source: Source,
    private readonly events: Events,
    window: Span | null,
  ) {
    this.extent = { begin: payload.begin_ns, end: Math.max(payload.end_ns, payload.begin_ns + 1) };
    this.window = clamp(window ?? opening(payload), this.extent);
    this.tiles = this.storeOf('tile');
    this.samples = new TileStore(
      (begin, end, signal) => this.source.counters(begin, end, BUCKETS, signal),
      this.extent,
      this.arrived,
      this.events.onTrouble,
    );
    this.blame = source.blame ? this.storeOf('blame') : null;
  }

  private storeOf(part: 'tile' | 'blame'): TileStore<Tile> {
    return new TileStore(
      async (begin, end, signal) => {
        const tile = await this.source[part]!(begin, end, BUCKETS, signal);
        for (const [code, text] of tile.names) {
          this.wholeNames.set(code, text);
          this.names.set(code, tile.shortNames.get(code) ?? text);
        }
        return tile;
      },
      this.extent,
      this.arrived,
      this.events.onTrouble,
    );
  }

  private readonly arrived = () => {
    this.dirty.slices = true;
    this.events.onLoading(this.tiles.loading || this.samples.loading);
    this.request();
  };

  destroy(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.rest);
  }

  // ---- what the page sets ---------------------------------------------------------------------------

  /** Another source of tiles (other colors, unfolded frames): what is kept no longer fits. */
  setSource(source: Source, colorBy: ColorBy): void {
    this.source = source;
    this.colorBy = colorBy;
    this.palette = null;
    this.tiles = this.storeOf('tile');
    this.changed();
  }

  resize(width: number, height: number): void {
    this.size = { width, height };
    const ratio = devicePixelRatio;
    for (const canvas of [this.slices, this.above]) {
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      canvas.getContext('2d', { alpha: canvas === this.above })!.setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.dirty = { slices: true, above: true };
    this.draw(); // a canvas of another size is black until it is drawn, and a frame is seen before the next one
  }

  setLayout(layout: Layout): void {
    this.layout = layout;
    this.changed();
  }

  setScroll(scroll: number): void {
    this.scroll = scroll;
    this.changed();
  }

  setHighlights(highlights: Highlights): void {
    this.dirty.slices ||= highlights.lit !== this.highlights.lit;
    this.highlights = highlights;
    this.dirty.above = true;
    this.request();
  }

  /** Where the ruler counts from, and how it writes an instant where counting is not enough. */
  setClock(origin: number, label: ((time: number) => string) | null): void {
    this.origin = origin;
    this.label = label;
    this.changed();
  }

  /** The page's colors have changed; they are read anew with the next frame. */
  setTheme(theme: string): void {
    if (theme !== this.theme) {
      this.theme = theme;
      this.palette = null;
      this.changed();
    }
  }

  // ---- the window ---------------------------------------------------------------------------------

  private show(window: Span): void {
    this.window = window;
    clearTimeout(this.rest);
    this.rest = setTimeout(this.settle, REST_MS);
    this.changed();
  }

  get nsPerPixel(): number {
    return (this.window.end - this.window.begin) / Math.max(this.size.width, 1);
  }

  timeAt(x: number): number {
    return this.window.begin + x * this.nsPerPixel;
  }

  panBy(pixels: number): void {
    this.show(pan(this.window, pixels * this.nsPerPixel, this.extent));
  }

  zoomBy(factor: number, x: number): void {
    this.show(zoom(this.window, factor, this.timeAt(x), this.extent));
  }

  zoomTo(span: Span): void {
    this.show(around(span, this.extent));
  }

  showAll(): void {
    this.show(whole(this.extent));
  }

  showWindow(window: Span): void {
    this.show(clamp(window, this.extent));
  }

  // ---- pointing -----------------------------------------------------------------------------------

  hover(x: number | null, y: number): { hit: Hit; blame: Blame | null } | null {
    this.cursor = x;
    const found = x === null ? null : this.hit(x, y);
    this.hovered = found && placeOf(found);
    this.dirty.above = true;
    this.request();
    return found;
  }

  hit(x: number, y: number): { hit: Hit; track: number; depth: number; blame: Blame | null } | null {
    if (!this.scene || y < HEAD) {
      return null;
    }
    const row = rowAt(this.layout, y - HEAD + this.scroll);
    const found = row ? hitTest(this.scene, row, x, y - HEAD) : null;
    if (!row?.track || !found) {
      return null;
    }
    if (row.kind === 'blame') {
      const category = this.payload.categories[found.color] ?? '';
      return { hit: found, track: row.track.id, depth: 0, blame: { device: row.track.device!, category } };
    }
    const depth = row.folded ? 0 : Math.floor((y - HEAD - (row.y - this.scroll) - 3) / row.lane);
    return { hit: found, track: row.track.id, depth, blame: null };
  }

  stepAt(x: number, y: number): Span | null {
    if (y >= HEAD) {
      return null;
    }
    const time = this.timeAt(x);
    const step = this.payload.steps.find(
      each => each.start_ns <= time && time < each.start_ns + each.duration_ns,
    );
    return step ? { begin: step.start_ns, end: step.start_ns + step.duration_ns } : null;
  }

  nameOf(code: number): string | undefined {
    return this.names.get(code);
  }

  wholeNameOf(code: number): string | undefined {
    return this.wholeNames.get(code);
  }

  /** The slice that a key leads to, as far as it is loaded; from none, to one in sight. */
  sliceBeside(place: Place | null, way: Way): number | null {
    return this.scene && (place ? slicePast(this.scene, place, way) : sliceInSight(this.scene));
  }

  /** What is drawn now, less what follows the pointer; null before the first frame. */
  get drawn(): { scene: Scene; above: Above } | null {
    const above = this.palette && { ...this.aboveScene(this.palette), hovered: null, cursor: null };
    return this.scene && above && { scene: this.scene, above };
  }

  private changed(): void {
    this.dirty = { slices: true, above: true };
    this.request();
  }

  private request(): void {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(this.draw);
    }
  }

  /** At rest the window is whole ns, as the address has it: a link opens the very same picture. */
  private readonly settle = () => {
    this.window = { begin: Math.floor(this.window.begin), end: Math.ceil(this.window.end) };
    this.dirty.slices = true;
    this.request();
    this.events.onWindow(this.window);
  };

  private readonly draw = () => {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const { width, height } = this.size;
    if (width === 0 || height <= HEAD) {
      return;
    }
    this.palette ??= readPalette(this.host, this.colorBy, this.payload.classes, this.payload.categories);
    if (this.dirty.slices) {
      const level = levelOf(this.nsPerPixel);
      this.tiles.want(this.window, level);
      this.samples.want(this.window, level);
      this.events.onLoading(this.tiles.loading || this.samples.loading);
      if (!this.tiles.loading && shows(this.layout, 'blame', this.scroll, height - HEAD)) {
        this.blame?.want(this.window, level);
      }
      this.scene = {
        width,
        height: height - HEAD,
        window: this.window,
        origin: this.origin,
        layout: this.layout,
        scroll: this.scroll,
        palette: this.palette,
        tiles: this.tiles.cover(this.window, level),
        samples: this.samples.cover(this.window, level),
        blame: this.blame?.cover(this.window, level) ?? [],
        names: this.names,
        lit: this.highlights.lit,
      };
      const context = this.slices.getContext('2d', { alpha: false })!;
      context.save();
      context.translate(0, HEAD);
      paint(context, this.scene);
      context.restore();
    }
    if (this.dirty.above || this.dirty.slices) {
      paintAbove(this.above.getContext('2d')!, this.aboveScene(this.palette));
    }
    this.dirty = { slices: false, above: false };
  };

  private bands(): Band[] {
    return (this.highlights.joined ?? []).flatMap(({ ends, strong }) => {
      const places = ends.flatMap(end => {
        const at = this.locate(end.event, end.start, end.tracks);
        return at ? [{ ...at, start: end.start, duration: end.duration }] : [];
      });
      return places.length > 1 ? [{ places, strong }] : [];
    });
  }

  private locate(event: number, start: number, tracks: readonly number[]) {
    const known = this.located.get(event) ?? locate(this.scene?.tiles ?? [], event, start, tracks);
    if (known) {
      this.located.set(event, known);
    }
    return known;
  }

  private aboveScene(palette: Palette): Above {
    const say = this.label;
    const marks = ticks(this.window, this.size.width, this.origin);
    return {
      width: this.size.width,
      height: this.size.height,
      window: this.window,
      layout: this.layout,
      scroll: this.scroll,
      palette,
      ticks: say ? marks.map(tick => ({ ...tick, label: say(tick.time) })) : marks,
      steps: this.payload.steps,
      recorded: this.payload.steps_recorded,
      area: this.highlights.area,
      marks: this.highlights.marks,
      selected: this.highlights.selected,
      hovered: this.hovered,
      arrows: this.highlights.arrows,
      bands: this.bands(),
      cursor: this.cursor,
    };
  }
}
