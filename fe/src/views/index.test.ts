import { expect, test } from 'vitest';
import openapi from '../../openapi.json';
import { VIEWS } from '.';

const SELECTORS = ['run', 'worker', 'span'];
type Operations = Record<
  string,
  { get?: { summary: string; tags?: string[]; parameters: { name: string }[] } } | undefined
>;
const paths = openapi.paths as unknown as Operations;

test.each(Object.entries(VIEWS))(
  'the page sends %s the parameters that the server takes',
  (slug, { serverParams }) => {
    const names = paths[`/view/${slug}`]?.get?.parameters.map(({ name }) => name);
    expect(names?.filter(name => !SELECTORS.includes(name)).toSorted()).toEqual([...serverParams].toSorted());
  },
);

test('the navigation is drawn before the server answers as it is afterwards', () => {
  const tabs = Object.keys(paths).filter(path => /^\/view\/[^/]+$/.test(path));
  const served = tabs.map(path => ({ path, ...paths[path]!.get! }));
  expect(served.map(({ path, summary, tags = [] }) => [path, summary, tags])).toEqual(
    Object.entries(VIEWS).map(([slug, { title, section }]) => [
      `/view/${slug}`,
      `The ${title} view`,
      section ? [section] : [],
    ]),
  );
});
