import { useEffect, useState } from 'react';
import { copyText, onSaved, type SavedFile } from '../base/browser/save';
import { useClient } from '../state/queries';
import { Button } from '../widgets/inputs/Button';
import { Icon } from '../widgets/Icon';
import css from './Saved.module.css';

/** How long the note stays if nobody uses it. */
const SHOWN_MS = 12_000;

interface Note {
  file: SavedFile;
  /** What came of copying it or of saving it on the server; null until one is asked for. */
  result: string | null;
}

/**
 * A note after each save. Sandboxed pages (an editor's webview) may not download, and are not told so: the note offers
 * to copy the file or to let the server write it into the log folder.
 */
export function Saved() {
  const client = useClient();
  const [note, setNote] = useState<Note | null>(null);
  useEffect(() => onSaved(file => setNote({ file, result: null })), []);
  useEffect(() => {
    if (!note) {
      return undefined;
    }
    const timer = setTimeout(() => setNote(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [note]);
  if (!note) {
    return null;
  }
  const { file, result } = note;
  const { name, blob } = file;
  const setResult = (words: string) => setNote({ file, result: words });
  const kind = name.split('.').at(-1)!;
  const copy = async () =>
    setResult((await copyText(await blob.text())) ? 'Copied.' : 'The browser blocked copying.');
  const save = async () => {
    try {
      setResult(`Saved as ${(await client.save(kind, blob)).file}`);
    } catch (error) {
      setResult(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <aside className={css.saved} aria-label="Saved file" data-part="saved">
      <span role="status">{result ?? `Downloading ${name}. Didn’t get it?`}</span>
      {result === null && kind !== 'png' && (
        <Button look="text" onClick={copy}>
          Copy it
        </Button>
      )}
      {result === null && !client.report && (
        <Button look="text" onClick={save}>
          Save into the log folder
        </Button>
      )}
      <Button look="quiet" aria-label="Close the note" title="Close the note" onClick={() => setNote(null)}>
        <Icon name="close" size={12} />
      </Button>
    </aside>
  );
}
