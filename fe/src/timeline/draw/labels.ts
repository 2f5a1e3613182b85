// Texts truncated to the width available.
import type { Drawing } from './vector';

/** Most texts whose widths are cached: several screens full. */
const MAX_CACHED_WIDTHS = 20_000;
/** Width that an ellipsis takes. */
const ELLIPSIS_PX = 8;

const widths = new Map<string, number>();

/** Return the width of a text, px; measured once. */
export function textWidth(context: Drawing, text: string): number {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > MAX_CACHED_WIDTHS) {
      widths.clear();
    }
    width = context.measureText(text).width;
    widths.set(text, width);
  }
  return width;
}

/** Return as much of a text as fits `width`, with an ellipsis; empty if fewer than two letters fit. */
export function truncateText(context: Drawing, text: string, maxWidth: number): string {
  const width = textWidth(context, text);
  if (width <= maxWidth) {
    return text;
  }
  const letters = Math.floor((text.length * (maxWidth - ELLIPSIS_PX)) / width);
  return letters >= 2 ? `${text.slice(0, letters)}…` : '';
}
