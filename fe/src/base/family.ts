// Families of kernels in the server's order; each has one color in every view.
const OTHER_COLOR = 'color-mix(in srgb, var(--tx-3) 35%, var(--sf))';

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
  other: OTHER_COLOR,
};

export const FAMILIES: readonly string[] = Object.keys(COLORS);

/** Return the color of a family; unknown ones have that of "other". */
export const familyColor = (family: string): string => COLORS[family] ?? OTHER_COLOR;
