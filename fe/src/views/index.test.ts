import { expect, test } from 'vitest';
import openapi from '../../openapi.json';
import { VIEWS } from '.';

const SELECTORS = ['run', 'worker', 'span'];
type Operations = Record<string, { get?: { parameters: { name: string }[] } } | undefined>;
const paths = openapi.paths as unknown as Operations;

test.each(Object.entries(VIEWS))(
  'the page sends %s the parameters that the server takes',
  (slug, { serverParams }) => {
    const names = paths[`/view/${slug}`]?.get?.parameters.map(({ name }) => name);
    expect(names?.filter(name => !SELECTORS.includes(name)).toSorted()).toEqual([...serverParams].toSorted());
  },
);

test('every tab of the server has a view', () => {
  const tabs = Object.keys(paths).filter(path => /^\/view\/[^/]+$/.test(path));
  expect(tabs.map(path => path.slice('/view/'.length)).toSorted()).toEqual(Object.keys(VIEWS).toSorted());
});
