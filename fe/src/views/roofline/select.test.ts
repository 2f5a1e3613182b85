import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/roofline.json';
import type { RooflinePayload } from '../../api/types';
import { ceilingsOf, decades, movesOf, pointsOf, rooflineKey } from './select';

const payload = golden.roofline as unknown as RooflinePayload;

it('places what computes by intensity, what only moves by bandwidth, and what is unknown nowhere', () => {
  expect(pointsOf(payload.rows).map(({ row }) => row.name)).toEqual(['aten::mm', 'aten::add', 'aten::mul']);
  expect(movesOf(payload.rows).map(row => row.name)).toEqual(['aten::copy_']);
});

it('draws the ceilings of the types that are used', () => {
  expect(ceilingsOf(payload)).toEqual([
    { title: 'bf16 matrix', flops: 989.4e12 },
    { title: 'fp32 vector', flops: 66.9e12 },
  ]);
  expect(ceilingsOf({ ...payload, devices: [] })).toEqual([]);
});

it('spans whole decades', () => {
  expect(decades([0.3, 200])).toEqual([0.1, 1000]);
  expect(decades([5])).toEqual([1, 1000]);
});

it('names a row by its shape too', () => {
  const row = payload.rows[0]!;
  expect(rooflineKey(row)).toBe('aten::mm');
  expect(rooflineKey({ ...row, input_shape: '[[2]]' })).toBe('aten::mm | [[2]]');
});
