import { expect, test } from 'vitest';
import names from '../../../tests/golden/kernel_names.json';
import { shortKernelName } from './kernelName';

test.each(names as [string, string][])('%s', (name, short) => {
  expect(shortKernelName(name)).toBe(short);
});
