import { expect, test } from 'vitest';
import { joinLines } from './OriginList';

test('lines of one file name it once', () => {
  expect(joinLines(['src/model.py:30', 'C:\\layers.py:4', 'src/model.py:31'])).toBe(
    'src/model.py:30, 31, C:\\layers.py:4',
  );
  expect(joinLines([])).toBe('');
});
