// Getting things out of the page. Plain http has no clipboard API, so copying falls back to a selection.
import { readState } from './host';

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.style.position = 'fixed';
    area.style.opacity = '0';
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

/** What of the log is shown, outermost first. */
export function subject(): string[] {
  const { run, worker, span, ranks } = readState();
  const of = ranks ? ranks.split(',').map(decodeURIComponent).join(' ') : worker;
  return [run, of, span === undefined ? undefined : `span ${span}`].filter(part => part !== undefined);
}

/** Of a part of a file's name: no file system takes names of more than 255 bytes. */
const LONGEST = 60;

/** Files of two runs lie beside each other: each is named for what it is of. */
const fileName = (name: string): string =>
  [...subject(), name].map(part => part.replace(/[^\p{L}\p{N}._-]+/gu, '_').slice(0, LONGEST)).join('.');

export function saveFile(name: string, content: BlobPart, type: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = fileName(name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
