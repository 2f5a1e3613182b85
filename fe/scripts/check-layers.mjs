// Checks the imports of src/: a folder imports only itself and the folders listed here, a view no other view but what
// views share (views/_shared), and no files import each other in a circle, types included.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
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

/** The file that an import names: with its ending left out, or a folder. */
const resolveImport = (file, name) =>
  [name, `${name}.ts`, `${name}.tsx`, `${name}/index.ts`, `${name}/index.tsx`]
    .map(path => resolve(dirname(file), path))
    .find(path => /\.tsx?$/.test(path) && existsSync(path));

const IMPORT = /from '([^']+)'|import '([^']+)'/g;
const importsOf = file =>
  [...readFileSync(file, 'utf8').matchAll(IMPORT)].map(([, from, alone]) => from ?? alone);

/** Return the circles among `graph`, file -> imported files, each as the path that closes it. */
function findCircles(graph) {
  const circles = [];
  const done = new Set();
  const visit = (file, path) => {
    const start = path.indexOf(file);
    if (start >= 0) {
      circles.push([...path.slice(start), file]);
    } else if (!done.has(file)) {
      (graph.get(file) ?? []).forEach(next => visit(next, [...path, file]));
      done.add(file);
    }
  };
  [...graph.keys()].forEach(file => visit(file, []));
  return circles;
}

const problems = [];
const graph = new Map();
for (const file of files(root)) {
  const names = importsOf(file);
  const relativeNames = names.filter(name => name.startsWith('.'));
  graph.set(file, relativeNames.map(name => resolveImport(file, name)).filter(Boolean));
  const [layer, view] = relative(root, file).split(sep);
  const allowed = ALLOWED[layer];
  if (!allowed) {
    continue;
  } // index.tsx, report.tsx, and mount.tsx import everything
  for (const name of names) {
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
    // A test may also import src/testing and the golden payloads that the tests of both languages use.
    const forTest = /\.test\.tsx?$/.test(file) && ['testing', '..'].includes(target);
    if ((target === layer && sameView) || allowed.includes(target) || forTest) {
      continue;
    }
    problems.push(`${relative('.', file)} may not import ${target}/${targetView ?? ''}`);
  }
}
for (const circle of findCircles(graph)) {
  problems.push(`circle: ${circle.map(file => relative('.', file)).join(' -> ')}`);
}
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
