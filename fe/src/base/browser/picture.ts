// Saving charts as SVG or PNG. A chart is an <svg> or <canvas> with its title and unit in `data-picture`.
import { saveFile, shownTrace } from './save';

/** Computed styles that are written into a saved chart. */
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
/** Layout, px. */
const MARGIN = 12;
const LINE_HEIGHT = 18;
/** Greatest average width of a letter of the heading, px. */
const LETTER_WIDTH = 6.8;
const MIN_WIDTH = 360;
const DOT_SIZE = 10;

/** A chart ready to be saved. */
export interface ChartPicture {
  /** What it shows, and in which unit. */
  title: string;
  /** Size in pixels. */
  width: number;
  height: number;
  /** Names and their colors. */
  legend: readonly (readonly [string, string])[];
  /** A copy with plain colors that needs no style sheet. */
  svg: SVGElement;
}

/** Return the charts of a panel from top to bottom. */
export const findCharts = (panel: Element): ChartPicture[] =>
  [...panel.querySelectorAll<SVGSVGElement | HTMLCanvasElement>('[data-picture]')].map(chart => {
    const { width, height } = chart.getBoundingClientRect();
    return { title: chart.dataset.picture!, width, height, legend: readLegend(chart), svg: copyChart(chart) };
  });

function element(name: string, attributes: Record<string, string | number>, content = ''): SVGElement {
  const node = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, String(value)));
  node.textContent = content;
  return node;
}

/** Return a computed color as rgb(): many programs that open SVG don't know the `color(srgb r g b)` of mixed colors. */
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

/** Split text into lines of at most `width` pixels. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && LETTER_WIDTH * (last.length + 1 + word.length) <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else {
      lines.push(word);
    }
  }
  return lines;
}

/** Return where each entry of a legend starts: beside the previous one, or on a new row. */
export function layOutLegend(names: readonly string[], width: number): { x: number; row: number }[] {
  let [x, row] = [0, 0];
  return names.map(name => {
    const entryWidth = DOT_SIZE + 5 + LETTER_WIDTH * name.length + 15;
    if (x > 0 && x + entryWidth > width) {
      [x, row] = [0, row + 1];
    }
    const place = { x, row };
    x += entryWidth;
    return place;
  });
}

/** Return names (`data-legend` of shapes) and colors: the fill, or the stroke of a shape without one. */
function readLegend(chart: Element): [string, string][] {
  return [...chart.querySelectorAll<SVGElement>('[data-legend]')].map(shape => {
    const { fill, stroke } = getComputedStyle(shape);
    return [shape.dataset.legend!, plainColor(fill === 'none' ? stroke : fill)];
  });
}

/** Copy a chart with its computed colors and fonts written into the elements. */
function copyChart(chart: SVGSVGElement | HTMLCanvasElement): SVGElement {
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
 * Return the charts below each other as one self-contained SVG with the name of the trace, the title and legend of each
 * chart, and the background of the theme.
 */
function buildSvg(charts: readonly ChartPicture[]): {
  text: string;
  width: number;
  height: number;
} {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue('--tx').trim();
  const inner = Math.max(MIN_WIDTH, ...charts.map(chart => chart.width));
  const nodes: SVGElement[] = [];
  let y = MARGIN;
  const write = (content: string, weight: number) => {
    for (const line of wrapText(content, inner)) {
      nodes.push(
        element('text', { x: MARGIN, y: y + 12, fill: ink, 'font-size': 12, 'font-weight': weight }, line),
      );
      y += LINE_HEIGHT;
    }
  };
  write(shownTrace().join(' · '), 600);
  for (const chart of charts) {
    write(chart.title, 400);
    const legend = [...new Map(chart.legend)];
    const places = layOutLegend(
      legend.map(([name]) => name),
      inner,
    );
    legend.forEach(([name, color], i) => {
      const { x, row } = places[i]!;
      const [left, top] = [MARGIN + x, y + row * LINE_HEIGHT];
      nodes.push(
        element('rect', { x: left, y: top + 2, width: DOT_SIZE, height: DOT_SIZE, fill: color }),
        element('text', { x: left + DOT_SIZE + 5, y: top + 12, fill: ink, 'font-size': 12 }, name),
      );
    });
    y += LINE_HEIGHT * (places.length > 0 ? places.at(-1)!.row + 1 : 0) + 6;
    const copy = element('g', { transform: `translate(${MARGIN} ${y})` });
    copy.append(chart.svg);
    nodes.push(copy);
    y += chart.height + MARGIN;
  }
  const [width, height] = [inner + 2 * MARGIN, y];
  const svg = element('svg', {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    'font-family': 'Inter, system-ui, sans-serif',
  });
  svg.append(element('rect', { width, height, fill: style.getPropertyValue('--sf').trim() }), ...nodes);
  return { text: new XMLSerializer().serializeToString(svg), width, height };
}

export function saveSvg(name: string, charts: readonly ChartPicture[]): void {
  saveFile(`${name}.svg`, buildSvg(charts).text, 'image/svg+xml');
}

export async function savePng(name: string, charts: readonly ChartPicture[]): Promise<void> {
  const { text, width, height } = buildSvg(charts);
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
