// Getting data out of the page: the clipboard and saved files.
import { readState } from './host';

/** Copy `text` and return whether it worked. Plain http has no clipboard API, so a hidden selection is the fallback. */
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

/** Return the names of the run, worker or ranks, and span shown, outermost first. */
export function shownTrace(): string[] {
  const { run, worker, span, ranks } = readState();
  const workers = ranks ? ranks.split(',').map(decodeURIComponent).join(' ') : worker;
  return [run, workers, span === undefined ? undefined : `span ${span}`].filter(part => part !== undefined);
}

/** Most characters of one part of a file name: no file system takes names of more than 255 bytes. */
const MAX_PART_LENGTH = 60;

/** Name the file after the trace, so that files of two runs can lie in one folder. */
const fileName = (name: string): string =>
  [...shownTrace(), name]
    .map(part => part.replace(/[^\p{L}\p{N}._-]+/gu, '_').slice(0, MAX_PART_LENGTH))
    .join('.');

/** A file that was handed to the browser, which doesn't tell whether it was allowed to save it. */
export interface SavedFile {
  name: string;
  blob: Blob;
}

const SAVED = 'profiler:saved';

export function saveFile(name: string, content: BlobPart, type: string): void {
  const link = document.createElement('a');
  const blob = new Blob([content], { type });
  link.href = URL.createObjectURL(blob);
  link.download = fileName(name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  window.dispatchEvent(new CustomEvent<SavedFile>(SAVED, { detail: { name: link.download, blob } }));
}

/** Call `listener` for each saved file; return the function that ends this. */
export function onSaved(listener: (file: SavedFile) => void): () => void {
  const saved = (event: Event) => listener((event as CustomEvent<SavedFile>).detail);
  window.addEventListener(SAVED, saved);
  return () => window.removeEventListener(SAVED, saved);
}

export type CsvCell = string | number | null;

/** Return rows as CSV; text that a spreadsheet would run as a formula gets a leading apostrophe. */
export function toCsv(columns: string[], rows: CsvCell[][]): string {
  return [columns, ...rows].map(row => row.map(escapeCell).join(',')).join('\n') + '\n';
}

function escapeCell(value: CsvCell): string {
  if (value === null) {
    return '';
  }
  if (typeof value === 'number') {
    return String(value);
  }
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
