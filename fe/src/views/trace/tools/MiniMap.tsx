// The overview strip: the entire trace and the visible window, which can be dragged.
import { useEffect, useRef, type KeyboardEvent, type PointerEvent } from 'react';
import type { TracePayload } from '../../../api/types';
import { formatDuration } from '../../../base/format';
import { readPalette } from '../../../timeline/draw/colors';
import type { Span } from '../../../timeline/tiles/store';
import type { Tile } from '../../../timeline/tiles/tile';
import { useWidth } from '../../../widgets/charts/useWidth';
import css from './MiniMap.module.css';

interface Props {
  payload: TracePayload;
  tile: Tile | undefined;
  tracks: readonly number[];
  /** Search hits, marked on the strip. */
  ticks: readonly Span[];
  window: Span;
  onWindow: (window: Span) => void;
  /** Formats an instant like the ruler. */
  time: (ns: number) => string;
}

/** Height of the map, px. */
const HEIGHT_PX = 30;
/** Lanes of a track that are drawn, one over the other. */
const MAX_DEPTH = 3;
/** Height of the marks at the top edge, px. */
const TICK_PX = 7;
/** By key: how far the window moves, in its own length, and the factor of its length. */
const KEY_MOVES: Record<string, readonly [number, number]> = {
  ArrowLeft: [-0.25, 1],
  ArrowRight: [0.25, 1],
  PageUp: [-1, 1],
  PageDown: [1, 1],
  ArrowUp: [0, 0.5],
  ArrowDown: [0, 2],
  Home: [-Infinity, 1],
  End: [Infinity, 1],
};

export function MiniMap({ payload, tile, tracks, ticks, window, onWindow, time }: Props) {
  const { ref, width } = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const grabOffset = useRef<number | null>(null);
  const length = Math.max(payload.end_ns - payload.begin_ns, 1);
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || width === 0 || !tile) {
      return;
    }
    const palette = readPalette(canvas.current!.parentElement!, 'class', payload.classes, payload.categories);
    const lane = HEIGHT_PX / Math.max(tracks.length, 1);
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, width, HEIGHT_PX);
    tracks.forEach((track, i) => {
      // Deeper lanes are drawn over the first: they are more specific.
      for (const depth of tile.lanes.get(track)?.filter(each => each.depth < MAX_DEPTH) ?? []) {
        for (let at = depth.first; at < depth.last; at++) {
          context.fillStyle = palette.of(tile.color[at]!).fill;
          context.globalAlpha =
            0.25 + 0.6 * (tile.duration[at]! > 0 ? tile.busy[at]! / tile.duration[at]! : 1);
          const x = ((tile.start[at]! - payload.begin_ns) / length) * width;
          context.fillRect(x, i * lane + 1, Math.max((tile.duration[at]! / length) * width, 0.7), lane - 2);
        }
      }
    });
    context.globalAlpha = 1;
    context.fillStyle = palette.text;
    for (const { begin, end } of ticks) {
      const x = ((begin - payload.begin_ns) / length) * width;
      context.fillRect(x, 0, Math.max(((end - begin) / length) * width, 1), TICK_PX);
    }
  }, [tile, width, payload, tracks, ticks, length]);
  const left = ((window.begin - payload.begin_ns) / length) * width;
  const size = ((window.end - window.begin) / length) * width;
  const move = (event: PointerEvent, x: number) => {
    const box = event.currentTarget.getBoundingClientRect();
    const middle = payload.begin_ns + ((event.clientX - box.left - x) / Math.max(width, 1)) * length;
    const half = (window.end - window.begin) / 2;
    onWindow({ begin: middle - half, end: middle + half });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const [by, longer] = KEY_MOVES[event.key] ?? [];
    if (by !== undefined && longer !== undefined) {
      event.preventDefault();
      const span = window.end - window.begin;
      const moved = (window.begin + window.end) / 2 + by * span;
      const middle = Math.min(Math.max(moved, payload.begin_ns), payload.end_ns);
      onWindow({ begin: middle - (span * longer) / 2, end: middle + (span * longer) / 2 });
    }
  };
  return (
    <div className={css.map} data-part="map" data-ticks={ticks.length}>
      <span className="dim">Entire trace, {formatDuration(length)}</span>
      <div
        ref={ref}
        className={css.strip}
        role="slider"
        tabIndex={0}
        aria-label="Visible time window of the entire trace"
        aria-valuemin={payload.begin_ns}
        aria-valuemax={payload.end_ns}
        aria-valuenow={Math.round((window.begin + window.end) / 2)}
        aria-valuetext={`${time(window.begin)} to ${time(window.end)}`}
        onKeyDown={onKeyDown}
        onPointerDown={event => {
          event.currentTarget.setPointerCapture(event.pointerId);
          const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
          const inside = x >= left && x <= left + size;
          grabOffset.current = inside ? x - (left + size / 2) : 0;
          move(event, grabOffset.current);
        }}
        onPointerMove={event => grabOffset.current !== null && move(event, grabOffset.current)}
        onPointerUp={() => {
          grabOffset.current = null;
        }}
      >
        <canvas
          ref={canvas}
          width={Math.max(1, Math.round(width * devicePixelRatio))}
          height={Math.round(HEIGHT_PX * devicePixelRatio)}
        />
        <i
          className={css.window}
          style={{ left: Math.max(left, 0), width: Math.max(Math.min(size, width), 3) }}
        />
      </div>
    </div>
  );
}
