import { expect, test } from 'vitest';
import { editorLink, mapPath } from './source';

test('the longest mapped prefix decides', () => {
  const mapping = [
    { from: '/job/', to: '/home/me/' },
    { from: '/job/lib/', to: '/opt/lib/' },
  ];
  expect(mapPath('/job/train.py', mapping)).toBe('/home/me/train.py');
  expect(mapPath('/job/lib/x.py', mapping)).toBe('/opt/lib/x.py');
  expect(mapPath('/else/x.py', mapping)).toBe('/else/x.py');
});

test('a link opens an editor and nothing else', () => {
  expect(editorLink('vscode://file/{path}:{line}', '/a b/x.py', 3)).toBe('vscode://file//a%20b/x.py:3');
  expect(editorLink('javascript:alert(1)//{path}', '/x.py', 3)).toBeNull();
  expect(editorLink('https://example.org/{path}', '/x.py', 3)).toBeNull();
});
