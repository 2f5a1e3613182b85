import { expect, it } from 'vitest';
import { fitting } from './fitting';

const even = (text: string) => 6 * text.length;

it('cuts no name that fits, to the pixel', () => {
  expect(fitting(['flash_attention_forward', 'mm'], 138, even)).toEqual(['flash_attention_forward', 'mm']);
  expect(fitting(['flash_attention_forward', 'mm'], 137, even)).toEqual(['flash_atten…on_forward', 'mm']);
});

it('cuts a name by what its own letters take, and keeps a narrow one of more letters', () => {
  const measure = (text: string) => (text.startsWith('l') ? 2 : 6) * text.length;
  const [wide, narrow] = fitting(['m'.repeat(40), 'l'.repeat(50)], 120, measure);
  expect(wide).toHaveLength(20);
  expect(narrow).toBe('l'.repeat(50));
});

it('keeps names apart that would look alike', () => {
  const [one, other] = fitting(['vectorized_add_fp32_copy', 'vectorized_mul_fp32_copy'], 90, even);
  expect(one).not.toBe(other);
  expect(one!.length).toBeLessThanOrEqual(15);
});

it('leaves the beginning where there is no room for both ends', () => {
  expect(fitting(['aten::convolution'], 48, even)).toEqual(['aten…ion']);
  expect(fitting(['aten::convolution'], 47, even)).toEqual(['aten::convolution']);
  expect(fitting(['aten::convolution'], -20, even)).toEqual(['aten::convolution']);
});
