// Getting things out of the page. Plain http has no clipboard API, so copying falls back to a selection.
import { readState } from './host';

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.style.position = 'fixed';
    area.style.opacity = '0';
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

/** What of the log is shown, outermost first. */
function subject(): string[] {
  const { run, worker, span } = readState();
  return [run, worker, span === undefined ? undefined : `span ${span}`].filter(part => part !== undefined);
}

/** Files of two runs lie beside each other: each is named for what it is of. */
const fileName = (name: string): string =>
  [...subject(), name].map(part => part.replace(/[^\p{L}\p{N}._-]+/gu, '_')).join('.');

export function saveFile(name: string, content: BlobPart, type: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = fileName(name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const STYLES = [
  'fill',
  'fill-opacity',
  'stroke',
  'stroke-width',
  'stroke-dasharray',
  'stroke-linejoin',
  'stroke-opacity',
  'paint-order',
  'opacity',
  'visibility',
  'font-size',
  'font-weight',
  'text-anchor',
];
const SVG = 'http://www.w3.org/2000/svg';
const LINE = 20;

/**
 * A drawing as a file of its own: computed colors and fonts are written into it, and above it what it is of and what
 * its colors mean (`data-legend` of its shapes).
 */
export function svgText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const originals = svg.querySelectorAll('*');
  copy.querySelectorAll('*').forEach((node, i) => {
    const style = getComputedStyle(originals[i]!);
    for (const name of STYLES) {
      node.setAttribute(name, style.getPropertyValue(name));
    }
    node.removeAttribute('class');
    node.removeAttribute('style');
  });
  const { width, height } = pictureSize(svg);
  const drawing = document.createElementNS(SVG, 'g');
  drawing.setAttribute('transform', `translate(0 ${HEAD})`);
  drawing.append(...copy.childNodes);
  copy.append(...heading(svg), drawing);
  copy.setAttribute('xmlns', SVG);
  copy.removeAttribute('viewBox');
  copy.setAttribute('width', String(width));
  copy.setAttribute('height', String(height));
  copy.setAttribute('font-family', 'Inter, system-ui, sans-serif');
  return new XMLSerializer().serializeToString(copy);
}

/** Room for what a drawing is of and its legend, px. */
const HEAD = 2 * LINE + 4;

function pictureSize(svg: SVGSVGElement): { width: number; height: number } {
  const box = svg.getBoundingClientRect();
  return { width: box.width, height: box.height + HEAD };
}

function heading(svg: SVGSVGElement): SVGElement[] {
  const ink = getComputedStyle(svg).color;
  const text = (content: string, x: number, y: number, weight: number) => {
    const node = document.createElementNS(SVG, 'text');
    const attributes = { x, y, fill: ink, 'font-size': 12, 'font-weight': weight };
    Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, String(value)));
    node.textContent = content;
    return node;
  };
  const colors = new Map<string, string>();
  svg.querySelectorAll<SVGElement>('[data-legend]').forEach(shape => {
    colors.set(shape.dataset.legend!, getComputedStyle(shape).fill);
  });
  let x = 0;
  const legend = [...colors].flatMap(([name, color]) => {
    const dot = document.createElementNS(SVG, 'rect');
    const attributes = { x, y: 2 * LINE - 14, width: 10, height: 10, fill: color };
    Object.entries(attributes).forEach(([key, value]) => dot.setAttribute(key, String(value)));
    const label = text(name, x + 15, 2 * LINE - 5, 400);
    x += 30 + 7 * name.length;
    return [dot, label];
  });
  return [text(subject().join(' · '), 0, LINE - 6, 600), ...legend];
}

export async function savePng(name: string, svg: SVGSVGElement, background: string): Promise<void> {
  const { width, height } = pictureSize(svg);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = 2 * width;
  canvas.height = 2 * height;
  const context = canvas.getContext('2d')!;
  context.scale(2, 2);
  context.fillStyle = background;
  context.fillRect(0, 0, width, height);
  context.drawImage(image, 0, 0);
  canvas.toBlob(blob => blob && saveFile(name, blob, 'image/png'), 'image/png');
}
