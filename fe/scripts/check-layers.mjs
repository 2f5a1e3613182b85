// The import rule of src/ as data: a folder imports itself and what is listed; a view what views share
// (views/_shared), never another view.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

const ALLOWED = {
  base: [],
  api: ['base'],
  state: ['api', 'base'],
  widgets: ['state', 'base'],
  timeline: ['api', 'base'],
  views: ['timeline', 'widgets', 'state', 'api', 'base'],
  shell: ['views', 'widgets', 'state', 'api', 'base'],
  testing: ['views', 'state', 'api', 'base'],
};
const NO_REACT = ['base', 'api', 'timeline'];
const root = resolve('src');

function* files(folder) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) {
      yield* files(path);
    } else if (/\.tsx?$/.test(name)) {
      yield path;
    }
  }
}

const problems = [];
for (const file of files(root)) {
  const [layer, view] = relative(root, file).split(sep);
  const allowed = ALLOWED[layer];
  if (!allowed) {
    continue;
  } // index.tsx joins all
  for (const [, name] of readFileSync(file, 'utf8').matchAll(/from '([^']+)'|import '([^']+)'/g)) {
    if (!name) {
      continue;
    }
    if (!name.startsWith('.')) {
      if (NO_REACT.includes(layer) && /^(react|@mantine|@tanstack)/.test(name)) {
        problems.push(`${file}: ${name}`);
      }
      continue;
    }
    const [target, targetView] = relative(root, resolve(dirname(file), name)).split(sep);
    const sameView =
      layer !== 'views' ||
      view === targetView ||
      target !== 'views' ||
      targetView === '_shared' ||
      view.startsWith('index.');
    // A test also takes what draws views for tests, and the goldens that hold both languages.
    const forTest = /\.test\.tsx?$/.test(file) && ['testing', '..'].includes(target);
    if ((target === layer && sameView) || allowed.includes(target) || forTest) {
      continue;
    }
    problems.push(`${relative('.', file)} may not import ${target}/${targetView ?? ''}`);
  }
}
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
