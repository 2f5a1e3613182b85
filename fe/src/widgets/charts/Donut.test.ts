import { expect, it } from 'vitest';
import { fitNames } from './Donut';

const sixPixels = (text: string) => 6 * text.length;

it('cuts no name that fits, to the pixel', () => {
  expect(fitNames(['flash_attention_forward', 'mm'], 138, sixPixels)).toEqual([
    'flash_attention_forward',
    'mm',
  ]);
  expect(fitNames(['flash_attention_forward', 'mm'], 137, sixPixels)).toEqual([
    'flash_atten…on_forward',
    'mm',
  ]);
});

it('cuts a name by the width of its own letters, so a narrow one keeps more of them', () => {
  const measure = (text: string) => (text.startsWith('l') ? 2 : 6) * text.length;
  const [wide, narrow] = fitNames(['m'.repeat(40), 'l'.repeat(50)], 120, measure);
  expect(wide).toHaveLength(20);
  expect(narrow).toBe('l'.repeat(50));
});

it('keeps names distinct that would look the same', () => {
  const [one, other] = fitNames(['vectorized_add_fp32_copy', 'vectorized_mul_fp32_copy'], 90, sixPixels);
  expect(one).not.toBe(other);
  expect(one!.length).toBeLessThanOrEqual(15);
});

it('leaves a name to the style sheet where both of its ends do not fit', () => {
  expect(fitNames(['aten::convolution'], 48, sixPixels)).toEqual(['aten…ion']);
  expect(fitNames(['aten::convolution'], 47, sixPixels)).toEqual(['aten::convolution']);
  expect(fitNames(['aten::convolution'], -20, sixPixels)).toEqual(['aten::convolution']);
});
