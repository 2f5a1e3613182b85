// What the wheel does: as in Chrome's and Perfetto's timelines, whatever there is to scroll.

/** Pixels of a line, where a browser counts in lines. */
const LINE_PX = 16;
/** A notch of a wheel zooms no farther than this, a power of e; a pinch comes in small parts. */
const MAX_ZOOM = 0.5;
const ZOOM_PER_PIXEL = 0.01;

type WheelTurn = Pick<WheelEvent, 'deltaX' | 'deltaY' | 'deltaMode' | 'ctrlKey' | 'metaKey' | 'shiftKey'>;

type WheelAction = { does: 'zoom'; factor: number } | { does: 'pan'; pixels: number } | { does: 'scroll' };

/**
 * Ctrl, Cmd or a pinch (which browsers report as Ctrl) zooms; Shift, or a turn to the side, pans; anything else
 * scrolls the tracks.
 */
export function wheelOf(
  { deltaX, deltaY, deltaMode, ctrlKey, metaKey, shiftKey }: WheelTurn,
  page: number,
): WheelAction {
  const unit = deltaMode === 1 ? LINE_PX : deltaMode === 2 ? page : 1;
  if (ctrlKey || metaKey) {
    return {
      does: 'zoom',
      factor: Math.exp(Math.max(-MAX_ZOOM, Math.min(MAX_ZOOM, deltaY * unit * ZOOM_PER_PIXEL))),
    };
  }
  if (shiftKey) {
    return { does: 'pan', pixels: (deltaX || deltaY) * unit };
  }
  return Math.abs(deltaX) > Math.abs(deltaY) ? { does: 'pan', pixels: deltaX * unit } : { does: 'scroll' };
}

/** What Safari says of a pinch, which it does not report as a turn of the wheel: the size since its start. */
type Pinch = Event & Readonly<{ scale: number; clientX: number }>;

/** Calls `zoom` with the part of a pinch that was made since the last call; returns what ends that. */
export function onPinch(node: HTMLElement, zoom: (factor: number, clientX: number) => void): () => void {
  let before = 1;
  const start = (event: Event) => {
    event.preventDefault(); // the browser would zoom the page
    before = 1;
  };
  const change = (event: Event) => {
    event.preventDefault();
    const { scale, clientX } = event as Pinch;
    if (scale > 0) {
      zoom(before / scale, clientX);
      before = scale;
    }
  };
  const end = (event: Event) => event.preventDefault();
  const heard = { gesturestart: start, gesturechange: change, gestureend: end };
  Object.entries(heard).forEach(([name, hear]) => node.addEventListener(name, hear, { passive: false }));
  return () => Object.entries(heard).forEach(([name, hear]) => node.removeEventListener(name, hear));
}
