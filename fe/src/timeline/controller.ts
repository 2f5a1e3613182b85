// The timeline's controller: holds the window, requests tiles, and repaints when something has changed.
import type { TracePayload } from '../api/types';
import type { Blame, ControllerEvents, Highlights, TileSource } from './contract';
import { readPalette, type ColorBy, type Palette } from './draw/colors';
import { type Layout, rowAt, isKindVisible } from './draw/layout';
import {
  HEADER_PX,
  paintOverlay,
  type OverlayScene,
  type OperationBand,
  type SlicePlace,
} from './draw/overlay';
import { hitTest, paint } from './draw/paint';
import type { Hit, Scene } from './draw/scene';
import { TILE_BUCKETS, levelOf, TileStore, type Span } from './tiles/store';
import type { Samples, Tile } from './tiles/tile';
import { ticks } from '../base/ticks';
import { locateEvent, visibleSlice, sliceInDirection, type Direction } from './lookup';
import {
  windowAround,
  clampWindow,
  extentOf,
  openingWindow,
  panWindow,
  fullWindow,
  zoomWindow,
} from './viewport';

/** Time without a movement after which the view counts as at rest, ms. */
const REST_MS = 250;
const NO_HIGHLIGHTS: Highlights = { area: null, marks: [], selected: null, arrows: [], highlight: null };

const placeOf = ({ track, depth, hit: { start, duration } }: { track: number; depth: number; hit: Hit }) =>
  ({ track, depth, start, duration }) satisfies SlicePlace;

export class Controller {
  window: Span;
  private layout: Layout = { rows: [], height: 0 };
  private scroll = 0;
  private size = { width: 0, height: 0 };
  private highlights = NO_HIGHLIGHTS;
  private hovered: SlicePlace | null = null;
  private cursor: number | null = null;
  private palette: Palette | null = null;
  private colorBy: ColorBy = 'class';
  private theme = '';
  private origin = 0;
  private formatTick: ((time: number) => string) | null = null;
  /** Names on labels, by code: the short name for kernels. */
  private readonly labelNames = new Map<number, string>();
  private readonly fullNames = new Map<number, string>();
  private tiles: TileStore<Tile>;
  private readonly samples: TileStore<Samples>;
  private readonly blame: TileStore<Tile> | null;
  private frame = 0;
  private dirty = { slices: true, above: true };
  private restTimer: ReturnType<typeof setTimeout> | undefined;
  private scene: Scene | null = null;
  /** Track and depth of joined events, by event; they are the same at every zoom. */
  private readonly locatedEvents = new Map<number, { track: number; depth: number }>();
  readonly extent: Span;

  constructor(
    private readonly host: HTMLElement,
    private readonly slices: HTMLCanvasElement,
    private readonly overlay: HTMLCanvasElement,
    private readonly payload: TracePayload,
    private source: TileSource,
    private readonly events: ControllerEvents,
    window: Span | null,
  ) {
    this.extent = extentOf(payload);
    this.window = clampWindow(window ?? openingWindow(payload), this.extent);
    this.tiles = this.storeOf('tile');
    this.samples = new TileStore(
      (begin, end, signal) => this.source.counters(begin, end, TILE_BUCKETS, signal),
      this.extent,
      this.onTile,
      this.events.onError,
    );
    this.blame = source.blame ? this.storeOf('blame') : null;
  }

  private storeOf(part: 'tile' | 'blame'): TileStore<Tile> {
    return new TileStore(
      async (begin, end, signal) => {
        const tile = await this.source[part]!(begin, end, TILE_BUCKETS, signal);
        for (const [code, text] of tile.names) {
          this.fullNames.set(code, text);
          this.labelNames.set(code, tile.shortNames.get(code) ?? text);
        }
        return tile;
      },
      this.extent,
      this.onTile,
      this.events.onError,
    );
  }

  private readonly onTile = () => {
    this.dirty.slices = true;
    this.events.onLoading(this.tiles.loading || this.samples.loading);
    this.request();
  };

  destroy(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.restTimer);
  }

  // ---- what the page sets ---------------------------------------------------------------------------

  /** Replace the source of tiles (other colors, unfolded frames) and drop the cached ones. */
  setSource(source: TileSource, colorBy: ColorBy): void {
    this.source = source;
    this.colorBy = colorBy;
    this.palette = null;
    this.tiles = this.storeOf('tile');
    this.changed();
  }

  resize(width: number, height: number): void {
    this.size = { width, height };
    const ratio = devicePixelRatio;
    for (const canvas of [this.slices, this.overlay]) {
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      canvas.getContext('2d', { alpha: canvas === this.overlay })!.setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.dirty = { slices: true, above: true };
    this.draw(); // a resized canvas is black until it is drawn, which one frame would show
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
    this.dirty.slices ||= highlights.highlight !== this.highlights.highlight;
    this.highlights = highlights;
    this.dirty.above = true;
    this.request();
  }

  /** Set the origin of the ruler, and how it formats an instant (null: as an offset). */
  setClock(origin: number, label: ((time: number) => string) | null): void {
    this.origin = origin;
    this.formatTick = label;
    this.changed();
  }

  /** Read the page's colors again with the next frame. */
  setTheme(theme: string): void {
    if (theme !== this.theme) {
      this.theme = theme;
      this.palette = null;
      this.changed();
    }
  }

  // ---- the window ---------------------------------------------------------------------------------

  private moveTo(window: Span): void {
    this.window = window;
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(this.settle, REST_MS);
    this.changed();
  }

  get nsPerPixel(): number {
    return (this.window.end - this.window.begin) / Math.max(this.size.width, 1);
  }

  timeAt(x: number): number {
    return this.window.begin + x * this.nsPerPixel;
  }

  panBy(pixels: number): void {
    this.moveTo(panWindow(this.window, pixels * this.nsPerPixel, this.extent));
  }

  zoomBy(factor: number, x: number): void {
    this.moveTo(zoomWindow(this.window, factor, this.timeAt(x), this.extent));
  }

  zoomTo(span: Span): void {
    this.moveTo(windowAround(span, this.extent));
  }

  showAll(): void {
    this.moveTo(fullWindow(this.extent));
  }

  showWindow(window: Span): void {
    this.moveTo(clampWindow(window, this.extent));
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
    if (!this.scene || y < HEADER_PX) {
      return null;
    }
    const row = rowAt(this.layout, y - HEADER_PX + this.scroll);
    const found = row ? hitTest(this.scene, row, x, y - HEADER_PX) : null;
    if (!row?.track || !found) {
      return null;
    }
    if (row.kind === 'blame') {
      const category = this.payload.categories[found.color] ?? '';
      return { hit: found, track: row.track.id, depth: 0, blame: { device: row.track.device!, category } };
    }
    const depth = row.folded ? 0 : Math.floor((y - HEADER_PX - (row.y - this.scroll) - 3) / row.lane);
    return { hit: found, track: row.track.id, depth, blame: null };
  }

  stepAt(x: number, y: number): Span | null {
    if (y >= HEADER_PX) {
      return null;
    }
    const time = this.timeAt(x);
    const step = this.payload.steps.find(
      each => each.start_ns <= time && time < each.start_ns + each.duration_ns,
    );
    return step ? { begin: step.start_ns, end: step.start_ns + step.duration_ns } : null;
  }

  nameOf(code: number): string | undefined {
    return this.labelNames.get(code);
  }

  fullNameOf(code: number): string | undefined {
    return this.fullNames.get(code);
  }

  /** Return the loaded slice in a direction from `place`, or a visible one if `place` is null. */
  adjacentSlice(place: SlicePlace | null, way: Direction): number | null {
    return this.scene && (place ? sliceInDirection(this.scene, place, way) : visibleSlice(this.scene));
  }

  /** Return what the last frame was drawn from, without the pointer's highlight; null before the first frame. */
  get lastFrame(): { scene: Scene; above: OverlayScene } | null {
    const above = this.palette && { ...this.overlayScene(this.palette), hovered: null, cursor: null };
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

  /** Round the window to ns, as in the address, so that a link opens the same picture. */
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
    if (width === 0 || height <= HEADER_PX) {
      return;
    }
    this.palette ??= readPalette(this.host, this.colorBy, this.payload.classes, this.payload.categories);
    if (this.dirty.slices) {
      const level = levelOf(this.nsPerPixel);
      this.tiles.request(this.window, level);
      this.samples.request(this.window, level);
      this.events.onLoading(this.tiles.loading || this.samples.loading);
      if (!this.tiles.loading && isKindVisible(this.layout, 'blame', this.scroll, height - HEADER_PX)) {
        this.blame?.request(this.window, level);
      }
      this.scene = {
        width,
        height: height - HEADER_PX,
        window: this.window,
        origin: this.origin,
        layout: this.layout,
        scroll: this.scroll,
        palette: this.palette,
        tiles: this.tiles.cover(this.window, level),
        samples: this.samples.cover(this.window, level),
        blame: this.blame?.cover(this.window, level) ?? [],
        names: this.labelNames,
        highlight: this.highlights.highlight,
      };
      const context = this.slices.getContext('2d', { alpha: false })!;
      context.save();
      context.translate(0, HEADER_PX);
      paint(context, this.scene);
      context.restore();
    }
    if (this.dirty.above || this.dirty.slices) {
      paintOverlay(this.overlay.getContext('2d')!, this.overlayScene(this.palette));
    }
    this.dirty = { slices: false, above: false };
  };

  private bands(): OperationBand[] {
    return (this.highlights.joinedEvents ?? []).flatMap(({ ends, strong }) => {
      const places = ends.flatMap(end => {
        const at = this.locate(end.event, end.start, end.tracks);
        return at ? [{ ...at, start: end.start, duration: end.duration }] : [];
      });
      return places.length > 1 ? [{ places, strong }] : [];
    });
  }

  private locate(event: number, start: number, tracks: readonly number[]) {
    const known = this.locatedEvents.get(event) ?? locateEvent(this.scene?.tiles ?? [], event, start, tracks);
    if (known) {
      this.locatedEvents.set(event, known);
    }
    return known;
  }

  private overlayScene(palette: Palette): OverlayScene {
    const { formatTick } = this;
    const marks = ticks(this.window, this.size.width, this.origin);
    return {
      width: this.size.width,
      height: this.size.height,
      window: this.window,
      layout: this.layout,
      scroll: this.scroll,
      palette,
      ticks: formatTick ? marks.map(tick => ({ ...tick, label: formatTick(tick.time) })) : marks,
      steps: this.payload.steps,
      recorded: this.payload.steps_recorded,
      stepNoun: this.payload.step_noun,
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
