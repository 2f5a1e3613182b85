// Colors of slices, read from the page's tokens so that both themes are right.
import { causeColor, isWork } from '../../base/causes';
import { FAMILIES, familyColor } from '../../base/family';

export type ColorBy = 'class' | 'family' | 'name' | 'module' | 'process_group';

interface Paint {
  fill: string;
  ink: string;
}

export interface Palette {
  of: (color: number) => Paint;
  /** Categories of a device's time, by code; `stacked` is their order from below, idle time first. */
  categories: readonly Paint[];
  stacked: readonly number[];
  /** The cause of idle time by code; null for work. */
  idle: readonly (string | null)[];
  background: string;
  surface: string;
  line: string;
  grid: string;
  text: string;
  soft: string;
  dim: string;
  accent: string;
  accentSoft: string;
  /** Bands between the tracks of one operation. */
  joined: string;
  font: string;
}

/** Distinguishable with any color vision (after Paul Tol's muted scheme), legible with dark ink. */
const DISTINCT_COLORS = [
  '#88ccee',
  '#44aa99',
  '#ddcc77',
  '#cc6677',
  '#999933',
  '#aa6fb5',
  '#6699cc',
  '#e0a05f',
  '#77bb77',
  '#c38d9e',
  '#8fa2d4',
  '#b5b56b',
];
/** Fills of causes that only light ink is legible on. */
const DARK_FILLS: ReadonlySet<string> = new Set(
  ['compile', 'latency', 'sync', 'communication', 'unknown']
    .map(name => `var(--x-${name})`)
    .concat('var(--c-late)'),
);
const NEUTRAL = 'color-mix(in srgb, var(--tx-3) 35%, var(--sf))';

export const distinctColor = (code: number): string =>
  code < 0 ? NEUTRAL : DISTINCT_COLORS[(code * 7) % DISTINCT_COLORS.length]!;

export const classColor = (name: string): string =>
  name === 'annotation'
    ? 'color-mix(in srgb, var(--ac) 45%, var(--sf))'
    : name === 'python'
      ? 'color-mix(in srgb, var(--c-dataloader) 30%, var(--sf-3))'
      : name === 'sync'
        ? 'color-mix(in srgb, var(--c-runtime) 45%, var(--sf))'
        : `var(--c-${name})`;

export function readPalette(
  host: HTMLElement,
  by: ColorBy,
  classes: readonly string[],
  categories: readonly string[],
): Palette {
  const probe = document.createElement('i');
  host.append(probe);
  const resolve = (color: string): string => {
    probe.style.color = color;
    return getComputedStyle(probe).color;
  };
  const style = getComputedStyle(host);
  const token = (name: string) => style.getPropertyValue(name).trim();
  const [text, none] = [token('--tx'), resolve(NEUTRAL)];
  const byClass = classes.map(name => ({
    fill: resolve(classColor(name)),
    ink: ['annotation', 'python', 'sync'].includes(name) ? text : resolve(`var(--ink-${name})`),
  }));
  const distinct = DISTINCT_COLORS.map(fill => ({ fill, ink: '#0b0d12' }));
  const other = { fill: none, ink: text };
  const byFamily = FAMILIES.map(name =>
    name === 'other'
      ? other
      : { fill: resolve(familyColor(name)), ink: name === 'communication' ? '#fff' : '#0b0d12' },
  );
  const idle = categories.map(name => (isWork(name) ? null : name));
  const byCategory = categories.map(name => ({
    fill: resolve(causeColor(name)),
    ink: isWork(name) ? text : DARK_FILLS.has(causeColor(name)) ? '#fff' : '#0b0d12',
  }));
  const codes = categories.map((_, code) => code);
  probe.remove();
  const of = (color: number): Paint => {
    if (by === 'class') {
      return byClass[color] ?? other;
    }
    if (by === 'family') {
      return byFamily[color - 1] ?? other;
    }
    const code = color - 1;
    return code < 0 ? other : distinct[(code * 7) % distinct.length]!;
  };
  return {
    of,
    categories: byCategory,
    stacked: [...codes.filter(code => idle[code] !== null), ...codes.filter(code => idle[code] === null)],
    idle,
    background: token('--bg'),
    surface: token('--sf'),
    line: token('--ln'),
    grid: token('--grid'),
    text,
    soft: token('--tx-2'),
    dim: token('--tx-3'),
    accent: token('--ac'),
    accentSoft: token('--ac-bg'),
    joined: token('--c-communication'),
    font: token('--font'),
  };
}
