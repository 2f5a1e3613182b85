import { describe, expect, it } from 'vitest';
import { splitNames } from './nameParts';

/** Return what is left of a name when its parts are cut as far as the style sheet ever cuts them. */
const narrowest = (name: string, parts: readonly string[] | undefined): string =>
  parts === undefined
    ? name.slice(0, 10)
    : parts.map((part, i) => part.slice(0, i === 0 ? 9 : part.length < 9 ? 8 : 6)).join('…');

const kernel = (type: string, layout: string, tile: string) =>
  `GEMM ${type} 32x32x256 ${layout}, Tensile ${tile}, a long list of flags that both have`;

describe('splitNames', () => {
  it('begins a part where names differ', () => {
    const names = ['GEMM bf16 32x32x256 tn, Tensile MT64', 'GEMM bf16 32x32x256 tn, Tensile MT16', 'softmax'];
    const parts = splitNames(names);
    expect(parts.get(names[0]!)).toEqual(['GEMM bf16 32x32x256 tn, Tensile ', 'MT64']);
    expect(parts.get(names[1]!)).toEqual(['GEMM bf16 32x32x256 tn, Tensile ', 'MT16']);
    expect(parts.has('softmax')).toBe(false);
  });

  it('keeps all places where names of a family differ, not only the last one', () => {
    const names = ['bf16', 'fp32'].flatMap(type =>
      ['tn', 'nt'].flatMap(layout =>
        ['MT64', 'MT16'].map(tile => `fused attention of ${kernel(type, layout, tile)}`),
      ),
    );
    const parts = splitNames(names);
    const seen = names.map(name => narrowest(name, parts.get(name)));
    expect(new Set(seen).size).toBe(names.length);
  });

  it('ends with the rest of a name that another one begins with', () => {
    const parts = splitNames(['aten::_foreach_mul_', 'aten::_foreach_mul_.Scalar']);
    expect(parts.get('aten::_foreach_mul_.Scalar')).toEqual(['aten::_foreach_mul_', '.Scalar']);
    expect(parts.has('aten::_foreach_mul_')).toBe(false);
  });

  it('leaves names alone that differ in what is never cut, and the same name in two rows', () => {
    expect(splitNames(['GEMM bf16 256x128', 'GEMM fp32 256x128', 'aten::mm', 'aten::mm']).size).toBe(0);
    expect(splitNames(Array.from({ length: 3 }, () => 'a name that is longer than its column')).size).toBe(0);
  });

  it('puts names together again', () => {
    const names = [kernel('bf16', 'tn', 'MT64'), kernel('bf16', 'nt', 'MT64'), kernel('bf16', 'nt', 'MT16')];
    for (const [name, parts] of splitNames(names)) {
      expect(parts.join('')).toBe(name);
    }
  });

  it('never cuts a letter of two code units in half', () => {
    const parts = splitNames(['a name with 🙂', 'a name with 🙃']);
    expect(parts.get('a name with 🙂')).toEqual(['a name with ', '🙂']);
    const after = splitNames(['a name with_x🙂', 'a name with_x🙃']);
    expect(after.get('a name with_x🙃')!.at(-1)).toMatch(/^(_?x)?🙃$/u);
  });
});
