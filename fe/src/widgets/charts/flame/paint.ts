// The boxes of a flame graph on its canvas.
import { shorten } from '../../../base/text';
import { LINE, type Box, type FlameNode } from './layout';

export interface Look {
  width: number;
  height: number;
  color: string;
  highlight?: (name: string) => boolean;
  /** What is pointed at, or where the keys are. */
  lit: FlameNode | null;
}

export function paintFlame(context: CanvasRenderingContext2D, boxes: Box[], look: Look): void {
  const style = getComputedStyle(context.canvas);
  const token = (name: string) => style.getPropertyValue(name).trim();
  const css = (color: string) => (color.startsWith('var(') ? token(color.slice(4, -1)) : color);
  const ink = token('--tx');
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, look.width, look.height);
  context.font = `11px ${token('--mono') || 'monospace'}`;
  context.textBaseline = 'middle';
  const letter = context.measureText('m').width;
  for (const { node, x, width, depth, above } of boxes) {
    const strong = look.highlight ? look.highlight(node.name) : !above;
    context.globalAlpha = node === look.lit ? 0.75 : strong ? 0.34 + 0.08 * (hash(node.name) % 3) : 0.12;
    context.fillStyle = css(node.color ?? look.color);
    context.fillRect(x, depth * LINE, Math.max(width - 0.75, 0.5), LINE - 1);
    context.globalAlpha = 1;
    const letters = Math.floor((width - 8) / letter);
    if (letters >= 3) {
      context.fillStyle = ink;
      context.fillText(shorten(node.name, letters), x + 4, depth * LINE + LINE / 2);
    }
  }
}

function hash(text: string): number {
  let value = 0;
  for (let i = 0; i < text.length; i++) {
    value = (value * 31 + text.charCodeAt(i)) >>> 0;
  }
  return value;
}
