// A Vite plugin that writes THIRD_PARTY_NOTICES.txt beside the page: name, version and license of every package
// that the page and its workers import, with the texts that these licenses ask to pass on; and of its fonts.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

const LICENSE_FILE = /^(licen[cs]e|notice|copying)/i;
const FONTS = 'src/styles/fonts';
const PACKAGE_FOLDER = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//;

/** Two plugins over one list: a worker is a bundle of its own, built before the page that starts it. */
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
          source: [...[...folders].map(notice), ...fonts()].sort().join('\n'),
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

/** The texts beside the fonts. */
function fonts(): string[] {
  return readdirSync(FONTS)
    .filter(file => file.endsWith('.txt'))
    .map(file => `${readFileSync(join(FONTS, file), 'utf8').trim()}\n`);
}

function notice(folder: string): string {
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
      `Declared in its package.json, which comes without the text of the license.\n` +
        `Author: ${author?.name ?? author ?? 'not stated'}\nSource: ${repository?.url ?? repository}`,
    );
  }
  const title = `${name} ${version} (${license})`;
  return [title, '-'.repeat(title.length), '', ...texts, ''].join('\n');
}
