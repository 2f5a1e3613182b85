// Families of kernels, in the server's order, and the color of each: one color, one family, in every view.
const NONE = 'color-mix(in srgb, var(--tx-3) 35%, var(--sf))';

const COLORS: Record<string, string> = {
  'matrix product': '#88ccee',
  convolution: '#6699cc',
  attention: '#aa6fb5',
  norm: '#44aa99',
  softmax: '#c38d9e',
  reduction: '#ddcc77',
  elementwise: '#e0a05f',
  'copy and cast': '#b5b56b',
  'index and embedding': '#77bb77',
  random: '#8fa2d4',
  optimizer: '#cc6677',
  communication: 'var(--c-communication)',
  memory: 'var(--c-memcpy)',
  other: NONE,
};

export const FAMILIES: readonly string[] = Object.keys(COLORS);

/** What is no work of a device has that of "other". */
export const familyColor = (family: string): string => COLORS[family] ?? NONE;
