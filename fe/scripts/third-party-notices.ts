// A Vite plugin that writes THIRD_PARTY_NOTICES.txt next to the page: name, version, and license text of every package
// that the page and its workers import, and the licenses of its fonts.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

const LICENSE_FILE = /^(licen[cs]e|notice|copying)/i;
const FONTS = 'src/styles/fonts';
const PACKAGE_FOLDER = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//;

/** Return two plugins that share one list: a worker is a separate bundle, built before the page that starts it. */
export function thirdPartyNotices(fileName = 'THIRD_PARTY_NOTICES.txt'): { page: Plugin; worker: Plugin } {
  const folders = new Set<string>();
  const collect = (ids: Iterable<string>) => {
    for (const id of ids) {
      const folder = PACKAGE_FOLDER.exec(id.replaceAll('\\', '/'))?.[1];
      if (folder && !folder.includes('\0')) {
        folders.add(folder);
      }
    }
  };
  return {
    page: {
      name: 'third-party-notices',
      apply: 'build',
      generateBundle() {
        collect(this.getModuleIds());
        this.emitFile({
          type: 'asset',
          fileName,
          source: [...[...folders].map(packageNotice), ...fontNotices()].sort().join('\n'),
        });
      },
    },
    worker: {
      name: 'third-party-notices-worker',
      generateBundle() {
        collect(this.getModuleIds());
      },
    },
  };
}

/** Return the license texts of the fonts. */
function fontNotices(): string[] {
  return readdirSync(FONTS)
    .filter(file => file.endsWith('.txt'))
    .map(file => `${readFileSync(join(FONTS, file), 'utf8').trim()}\n`);
}

function packageNotice(folder: string): string {
  const { name, version, license, author, repository } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  );
  if (!license) {
    throw new Error(`${name} declares no license (${folder})`);
  }
  const texts = readdirSync(folder)
    .filter(file => LICENSE_FILE.test(file))
    .map(file => readFileSync(join(folder, file), 'utf8').trim());
  if (!texts.length) {
    texts.push(
      `Declared in its package.json, which includes no license text.\n` +
        `Author: ${author?.name ?? author ?? 'not stated'}\nSource: ${repository?.url ?? repository}`,
    );
  }
  const title = `${name} ${version} (${license})`;
  return [title, '-'.repeat(title.length), '', ...texts, ''].join('\n');
}
