// Charts as files of their own. A chart is an <svg> or <canvas> with `data-picture`: what it shows, and in which unit.
import { saveFile, subject } from './save';

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
const MARGIN = 12;
const LINE = 18;
/** Pixels that a letter of the heading takes at most, on average. */
const LETTER = 6.8;
const NARROWEST = 360;
const DOT = 10;

/** What is saved: px, what it shows and in which unit, what its colors mean. */
export interface Chart {
  title: string;
  width: number;
  height: number;
  legend: readonly (readonly [string, string])[];
  /** With plain colors, and nothing that needs the page. */
  drawn: SVGElement;
}

/** The charts of a panel, from top to bottom. */
export const charts = (panel: Element): Chart[] =>
  [...panel.querySelectorAll<SVGSVGElement | HTMLCanvasElement>('[data-picture]')].map(chart => {
    const { width, height } = chart.getBoundingClientRect();
    return { title: chart.dataset.picture!, width, height, legend: legendOf(chart), drawn: copied(chart) };
  });

function element(name: string, attributes: Record<string, string | number>, content = ''): SVGElement {
  const node = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, String(value)));
  node.textContent = content;
  return node;
}

/** Mixed colors compute to `color(srgb r g b)`, which many programs that open drawings do not know. */
export function plainColor(value: string): string {
  const parts = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ ([\d.e-]+))?\)$/.exec(value);
  if (!parts) {
    return value;
  }
  const [red, green, blue] = parts.slice(1, 4).map(part => Math.round(255 * Number(part)));
  return parts[4] === undefined
    ? `rgb(${red}, ${green}, ${blue})`
    : `rgba(${red}, ${green}, ${blue}, ${parts[4]})`;
}

/** Words on as many lines as the width asks for. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && LETTER * (last.length + 1 + word.length) <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else {
      lines.push(word);
    }
  }
  return lines;
}

/** Where each entry of a legend begins: beside the one before it, or on a new line. */
export function placed(names: readonly string[], width: number): { x: number; row: number }[] {
  let [x, row] = [0, 0];
  return names.map(name => {
    const taken = DOT + 5 + LETTER * name.length + 15;
    if (x > 0 && x + taken > width) {
      [x, row] = [0, row + 1];
    }
    const place = { x, row };
    x += taken;
    return place;
  });
}

/** What the colors mean: `data-legend` of the shapes; of what is not filled, the color of its line. */
function legendOf(chart: Element): [string, string][] {
  return [...chart.querySelectorAll<SVGElement>('[data-legend]')].map(shape => {
    const { fill, stroke } = getComputedStyle(shape);
    return [shape.dataset.legend!, plainColor(fill === 'none' ? stroke : fill)];
  });
}

/** A copy of the chart with the computed colors and fonts written into it. */
function copied(chart: SVGSVGElement | HTMLCanvasElement): SVGElement {
  const { width, height } = chart.getBoundingClientRect();
  if (chart instanceof HTMLCanvasElement) {
    return element('image', { href: chart.toDataURL(), width, height });
  }
  const copy = chart.cloneNode(true) as SVGSVGElement;
  const originals = chart.querySelectorAll('*');
  copy.querySelectorAll('*').forEach((node, i) => {
    const style = getComputedStyle(originals[i]!);
    for (const name of STYLES) {
      node.setAttribute(name, plainColor(style.getPropertyValue(name)));
    }
    node.removeAttribute('class');
    node.removeAttribute('style');
  });
  const group = element('g', {});
  group.append(...copy.childNodes);
  return group;
}

/**
 * The charts below each other as one drawing that needs nothing else: which run it is of, what each chart shows, what
 * its colors mean, on the surface of the theme.
 */
export function pictureOf(drawn: readonly Chart[]): {
  text: string;
  width: number;
  height: number;
} {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue('--tx').trim();
  const inner = Math.max(NARROWEST, ...drawn.map(chart => chart.width));
  const nodes: SVGElement[] = [];
  let y = MARGIN;
  const write = (content: string, weight: number) => {
    for (const line of wrapped(content, inner)) {
      nodes.push(
        element('text', { x: MARGIN, y: y + 12, fill: ink, 'font-size': 12, 'font-weight': weight }, line),
      );
      y += LINE;
    }
  };
  write(subject().join(' · '), 600);
  for (const chart of drawn) {
    write(chart.title, 400);
    const legend = [...new Map(chart.legend)];
    const places = placed(
      legend.map(([name]) => name),
      inner,
    );
    legend.forEach(([name, color], i) => {
      const at = places[i]!;
      const [left, top] = [MARGIN + at.x, y + at.row * LINE];
      nodes.push(
        element('rect', { x: left, y: top + 2, width: DOT, height: DOT, fill: color }),
        element('text', { x: left + DOT + 5, y: top + 12, fill: ink, 'font-size': 12 }, name),
      );
    });
    y += LINE * (places.length > 0 ? places.at(-1)!.row + 1 : 0) + 6;
    const copy = element('g', { transform: `translate(${MARGIN} ${y})` });
    copy.append(chart.drawn);
    nodes.push(copy);
    y += chart.height + MARGIN;
  }
  const [width, height] = [inner + 2 * MARGIN, y];
  const whole = element('svg', {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    'font-family': 'Inter, system-ui, sans-serif',
  });
  whole.append(element('rect', { width, height, fill: style.getPropertyValue('--sf').trim() }), ...nodes);
  return { text: new XMLSerializer().serializeToString(whole), width, height };
}

export function saveSvg(name: string, drawn: readonly Chart[]): void {
  saveFile(`${name}.svg`, pictureOf(drawn).text, 'image/svg+xml');
}

export async function savePng(name: string, drawn: readonly Chart[]): Promise<void> {
  const { text, width, height } = pictureOf(drawn);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = 2 * width;
  canvas.height = 2 * height;
  const context = canvas.getContext('2d')!;
  context.scale(2, 2);
  context.drawImage(image, 0, 0);
  canvas.toBlob(blob => blob && saveFile(`${name}.png`, blob, 'image/png'), 'image/png');
}
