import type { Phrase } from '../base/text';
import { Button } from './inputs/Button';
import { useSelection } from '../state/selection';

interface Props {
  text: readonly Phrase[];
  /** Parameters that a link within the view leaves as they are. */
  keep?: readonly string[];
}

/** Words that the server made; a phrase that has evidence opens it. */
export function Sentence({ text, keep = [] }: Props) {
  const { selection, select } = useSelection();
  const open = (link: string) => {
    const target = targetOf(link);
    const kept = Object.entries(selection.params).filter(
      ([name]) => target.view === selection.view && keep.includes(name),
    );
    select({ ...target, params: { ...Object.fromEntries(kept), ...target.params } });
  };
  return (
    <>
      {text.map(({ text: words, link }, i) =>
        link ? (
          <Button key={i} look="link" onClick={() => open(link)}>
            {words}
          </Button>
        ) : (
          <Words key={i} text={words} />
        ),
      )}
    </>
  );
}

/** Words of which those between backticks are code. */
export function Words({ text }: { text: string }) {
  const parts = text.split('`');
  // A backtick without its partner is one that a name brought along.
  return parts.length % 2 === 0 ? text : parts.map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part));
}

/** The words alone. */
export const plain = (text: readonly Phrase[]): string => text.map(phrase => phrase.text).join('');

/** What a link opens: `operators?search=conv` is a view and its parameters; run, worker and span choose the trace. */
export function targetOf(link: string) {
  const [view = '', query = ''] = link.split('?', 2);
  const { run, worker, span, ...params } = Object.fromEntries(new URLSearchParams(query));
  return { view, params, ...(run && { run }), ...(worker && { worker }), ...(span && { span }) };
}
