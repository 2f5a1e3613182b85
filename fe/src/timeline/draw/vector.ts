// A drawing context that writes SVG, so that the painters also produce vector pictures.
import { plainColor } from '../../base/browser/picture';

/** The methods of a canvas context that the painters use. */
export type Drawing = Pick<
  CanvasRenderingContext2D,
  | 'arc'
  | 'beginPath'
  | 'bezierCurveTo'
  | 'clearRect'
  | 'clip'
  | 'closePath'
  | 'fill'
  | 'fillRect'
  | 'fillStyle'
  | 'fillText'
  | 'font'
  | 'globalAlpha'
  | 'lineTo'
  | 'lineWidth'
  | 'measureText'
  | 'moveTo'
  | 'rect'
  | 'restore'
  | 'roundRect'
  | 'save'
  | 'stroke'
  | 'strokeRect'
  | 'strokeStyle'
  | 'textBaseline'
>;

type Attributes = Record<string, string | number>;

const SVG = 'http://www.w3.org/2000/svg';

function node(name: string, attributes: Attributes): SVGElement {
  const element = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, String(value)));
  return element;
}

/** Hundredths of a pixel are finer than any screen or printer. */
const rounded = (value: number): number => Math.round(value * 100) / 100;

export class SvgDrawing implements Drawing {
  fillStyle: string | CanvasGradient | CanvasPattern = '#000';
  strokeStyle: string | CanvasGradient | CanvasPattern = '#000';
  font = '11px sans-serif';
  globalAlpha = 1;
  lineWidth = 1;
  textBaseline: CanvasTextBaseline = 'middle';
  /** The drawing, clipped at its edges. */
  readonly root: SVGElement;
  /** The colors that shapes are filled with. */
  readonly fills = new Set<string>();
  private parents: SVGElement[];
  private path: string[] = [];
  private box: Attributes = {};

  /** `ruler` measures texts; the drawing covers `width` x `height` px from (x, y) on. */
  constructor(
    private readonly ruler: Pick<CanvasRenderingContext2D, 'font' | 'measureText'>,
    { x, y, width, height }: { x: number; y: number; width: number; height: number },
  ) {
    this.root = node('svg', { x, y, width, height });
    this.parents = [this.root];
  }

  private put(name: string, attributes: Attributes): SVGElement {
    const element = node(name, attributes);
    if (this.globalAlpha < 1) {
      element.setAttribute('opacity', String(rounded(this.globalAlpha)));
    }
    this.parents.at(-1)!.append(element);
    return element;
  }

  private get color(): string {
    const color = plainColor(String(this.fillStyle));
    this.fills.add(color);
    return color;
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.put('rect', { ...boxOf(x, y, width, height), fill: this.color });
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.put('rect', { ...boxOf(x, y, width, height), ...this.line });
  }

  /** Do nothing: a new drawing is empty. */
  clearRect(): void {}

  fillText(text: string, x: number, y: number): void {
    const element = this.put('text', {
      x: rounded(x),
      y: rounded(y),
      fill: plainColor(String(this.fillStyle)),
      'font-size': parseFloat(/[\d.]+(?=px)/.exec(this.font)?.[0] ?? '11'),
      'font-weight': /^\d+ /.test(this.font) ? parseInt(this.font, 10) : 400,
      'dominant-baseline': 'central',
    });
    element.textContent = text;
  }

  measureText(text: string): TextMetrics {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  beginPath(): void {
    this.path = [];
  }

  moveTo(x: number, y: number): void {
    this.add('M', x, y);
  }

  lineTo(x: number, y: number): void {
    this.add('L', x, y);
  }

  bezierCurveTo(...points: [number, number, number, number, number, number]): void {
    this.add('C', ...points);
  }

  closePath(): void {
    this.add('Z');
  }

  /** Add a full circle; arcs are not supported. */
  arc(x: number, y: number, radius: number): void {
    const half = (to: number) => this.add('A', radius, radius, 0, 0, 1, to, y);
    this.add('M', x - radius, y);
    half(x + radius);
    half(x - radius);
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.box = boxOf(x, y, width, height);
  }

  roundRect(x: number, y: number, width: number, height: number, radius = 0): void {
    const corner = Number(radius);
    const turn = (dx: number, dy: number) => this.path.push(`a${corner},${corner} 0 0 1 ${dx},${dy}`);
    this.add('M', x + corner, y);
    this.add('H', x + width - corner);
    turn(corner, corner);
    this.add('V', y + height - corner);
    turn(-corner, corner);
    this.add('H', x + corner);
    turn(-corner, -corner);
    this.add('V', y + corner);
    turn(corner, -corner);
  }

  fill(): void {
    this.put('path', { d: this.path.join(''), fill: this.color });
  }

  stroke(): void {
    this.put('path', { d: this.path.join(''), ...this.line });
  }

  save(): void {
    this.parents.push(this.parents.at(-1)!);
  }

  /** Clip to the rectangle of the path until `restore`. */
  clip(): void {
    const { x, y, width, height } = this.box;
    const element = node('svg', { ...this.box, viewBox: [x, y, width, height].join(' ') });
    this.parents.pop()!.append(element);
    this.parents.push(element);
  }

  restore(): void {
    this.parents.pop();
  }

  private get line(): Attributes {
    return { fill: 'none', stroke: plainColor(String(this.strokeStyle)), 'stroke-width': this.lineWidth };
  }

  private add(command: string, ...numbers: number[]): void {
    this.path.push(command + numbers.map(rounded).join(' '));
  }
}

const boxOf = (x: number, y: number, width: number, height: number) => ({
  x: rounded(x),
  y: rounded(y),
  width: rounded(Math.max(width, 0)),
  height: rounded(Math.max(height, 0)),
});
