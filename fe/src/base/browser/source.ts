// Opening the file of a recorded stack frame on this machine.
import { readSetting, writeSetting } from './settings';

interface SourceSettings {
  /** Recorded path prefixes and their replacements on this machine: "/home/train/src" -> "/Users/me/src". */
  mapping: { from: string; to: string }[];
  /** The link that a click opens; {path} and {line} are filled in. Without one, paths can only be copied. */
  link: string;
}

export const EDITOR_LINK = 'vscode://file/{path}:{line}';
const SETTING_NAME = 'source';

export function readSourceSettings(): SourceSettings {
  const stored = readSetting(SETTING_NAME) as Partial<SourceSettings> | undefined;
  return {
    mapping: (stored?.mapping ?? []).filter(
      row => typeof row?.from === 'string' && typeof row?.to === 'string',
    ),
    link: typeof stored?.link === 'string' ? stored.link : EDITOR_LINK,
  };
}

export const writeSourceSettings = (settings: SourceSettings): void => writeSetting(SETTING_NAME, settings);

/** Return the path of a recorded file on this machine, by the longest mapped prefix. */
export function mapPath(path: string, mapping: SourceSettings['mapping']): string {
  const match = mapping
    .filter(row => row.from !== '' && path.startsWith(row.from))
    .sort((a, b) => b.from.length - a.from.length)[0];
  return match ? match.to + path.slice(match.from.length) : path;
}

/** Return the editor's link to a line, or null if the template isn't an editor's: it could run code. */
export function editorLink(template: string, path: string, line: number): string | null {
  if (!/^(?:vscode|vscode-insiders|vscodium|cursor|idea|pycharm|txmt|subl|zed):\/\//.test(template)) {
    return null;
  }
  const encodedPath = path.split('/').map(encodeURIComponent).join('/').replaceAll('%3A', ':');
  return template.replaceAll('{path}', encodedPath).replaceAll('{line}', String(line));
}

/** Return whether TensorBoard itself is in another page's frame, like in VS Code, which opens files on request. */
export const isEmbedded = (): boolean => window.parent !== window && window.parent.parent !== window.parent;

/** Ask the page around TensorBoard to open a file; VS Code counts lines from 0 and takes 0 for none. */
export function openInHost(path: string, line: number): void {
  window.parent.parent.postMessage({ filename: path, line: Math.max(1, line - 1) }, '*');
}
