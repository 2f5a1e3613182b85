// From a frame of a recorded stack to the file on this machine.
import { readSetting, writeSetting } from './settings';

export interface SourceSettings {
  /** Recorded prefixes and what they are here: "/home/train/src" -> "/Users/me/src". */
  mapping: { from: string; to: string }[];
  /** Where a click leads; {path} and {line} are filled in. Empty: a click copies. */
  link: string;
}

export const EDITOR_LINK = 'vscode://file/{path}:{line}';
const SETTING = 'source';

export function sourceSettings(): SourceSettings {
  const stored = readSetting(SETTING) as Partial<SourceSettings> | undefined;
  return {
    mapping: (stored?.mapping ?? []).filter(
      row => typeof row?.from === 'string' && typeof row?.to === 'string',
    ),
    link: typeof stored?.link === 'string' ? stored.link : EDITOR_LINK,
  };
}

export const keepSourceSettings = (settings: SourceSettings): void => writeSetting(SETTING, settings);

/** The path of a recorded file on this machine: the longest prefix that is mapped decides. */
export function mapPath(path: string, mapping: SourceSettings['mapping']): string {
  const fits = mapping
    .filter(row => row.from !== '' && path.startsWith(row.from))
    .sort((a, b) => b.from.length - a.from.length)[0];
  return fits ? fits.to + path.slice(fits.from.length) : path;
}

/** The link of an editor, or null where it could run something instead of opening a file. */
export function editorLink(template: string, path: string, line: number): string | null {
  if (!/^(?:vscode|vscode-insiders|vscodium|cursor|idea|pycharm|txmt|subl|zed):\/\//.test(template)) {
    return null;
  }
  const place = path.split('/').map(encodeURIComponent).join('/').replaceAll('%3A', ':');
  return template.replaceAll('{path}', place).replaceAll('{line}', String(line));
}

/** TensorBoard itself lies in another page's frame, as in VS Code, which opens files on request. */
export const isEmbedded = (): boolean => window.parent !== window && window.parent.parent !== window.parent;

/** Asks the page around TensorBoard to open a file; VS Code counts lines from 0 and takes 0 for none. */
export function openInHost(path: string, line: number): void {
  window.parent.parent.postMessage({ filename: path, line: Math.max(1, line - 1) }, '*');
}
