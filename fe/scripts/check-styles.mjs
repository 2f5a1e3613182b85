// Checks that the classes of CSS modules and those used by components are the same, and that form controls come from
// widgets/inputs, which wraps Mantine's.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const root = resolve('src');
const files = readdirSync(root, { recursive: true }).map(name => join(root, name));
const classes = text => [...text.matchAll(/\.([a-zA-Z_][\w-]*)/g)].map(match => match[1]);

const problems = [];
const modules = new Map();
for (const file of files.filter(name => name.endsWith('.module.css'))) {
  const selectors = readFileSync(file, 'utf8')
    .replace(/\/\*.*?\*\//gs, '')
    .replace(/\{[^{}]*\}/g, '{}')
    .replace(/:global\([^)]*\)/g, '');
  modules.set(file, { defined: new Set(classes(selectors)), used: new Set(), open: false });
}
for (const file of files.filter(name => /\.tsx$/.test(name))) {
  const text = readFileSync(file, 'utf8');
  for (const [, name, path] of text.matchAll(/import (\w+) from '([^']+\.module\.css)'/g)) {
    const module = modules.get(resolve(dirname(file), path));
    for (const [, used] of text.matchAll(new RegExp(`\\b${name}\\.(\\w+)`, 'g'))) {
      module.used.add(used);
      if (!module.defined.has(used)) {
        problems.push(`${relative('.', file)}: ${path} has no class ${used}`);
      }
    }
    module.open ||= text.includes(`${name}[`); // a class chosen at run time, so any of them may be used
  }
  for (const [, control] of text.matchAll(/<(button|input|select|textarea)\b/g)) {
    problems.push(`${relative('.', file)}: <${control}> instead of a widget of widgets/inputs`);
  }
}
for (const [file, { defined, used, open }] of modules) {
  for (const name of defined) {
    if (!used.has(name) && !open) {
      problems.push(`${relative('.', file)}: unused class .${name}`);
    }
  }
}
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
