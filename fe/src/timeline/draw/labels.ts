// Texts cut to the room they have.
import type { Drawing } from './vector';

const widths = new Map<string, number>();

/** Pixels. */
export function widthOf(context: Drawing, text: string): number {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > 20_000) {
      widths.clear();
    }
    width = context.measureText(text).width;
    widths.set(text, width);
  }
  return width;
}

/** As much of a text as fits, with an ellipsis; empty where not even a few letters do. */
export function fitted(context: Drawing, text: string, room: number): string {
  const width = widthOf(context, text);
  if (width <= room) {
    return text;
  }
  const letters = Math.floor((text.length * (room - 8)) / width);
  return letters >= 2 ? `${text.slice(0, letters)}…` : '';
}
