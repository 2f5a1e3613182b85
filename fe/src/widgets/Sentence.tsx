import { useSelection } from '../state/selection';

export interface Phrase {
  text: string;
  link?: string | null;
}

/** Words that the server made; a phrase that has evidence opens it. */
export function Sentence({ text }: { text: readonly Phrase[] }) {
  const { select } = useSelection();
  return (
    <>
      {text.map(({ text: words, link }, i) =>
        link ? (
          <button key={i} type="button" className="link" onClick={() => select(targetOf(link))}>
            {words}
          </button>
        ) : (
          words
        ),
      )}
    </>
  );
}

/** What a link opens: `operators?search=conv` is a view and its parameters; run, worker and span choose the trace. */
export function targetOf(link: string) {
  const [view = '', query = ''] = link.split('?', 2);
  const { run, worker, span, ...params } = Object.fromEntries(new URLSearchParams(query));
  return { view, params, ...(run && { run }), ...(worker && { worker }), ...(span && { span }) };
}
