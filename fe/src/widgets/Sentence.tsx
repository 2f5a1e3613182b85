// Sentences from the server, with links to their evidence and with code.
import { joinUnits, type Phrase } from '../base/text';
import { useSelection } from '../state/selection';

interface Props {
  text: readonly Phrase[];
  /** Parameters that a link within the view leaves as they are. */
  keepParams?: readonly string[];
}

/** A sentence; a phrase with a link opens its evidence. */
export function Sentence({ text, keepParams = [] }: Props) {
  const { selection, select } = useSelection();
  const open = (link: string) => {
    const target = parseLink(link);
    const unchanged = Object.entries(selection.params).filter(
      ([name]) => target.view === selection.view && keepParams.includes(name),
    );
    select({ ...target, params: { ...Object.fromEntries(unchanged), ...target.params } });
  };
  return (
    <>
      {text.map(({ text: words, link }, i) =>
        link ? (
          <InlineLink key={i} onOpen={() => open(link)}>
            {joinUnits(words)}
          </InlineLink>
        ) : (
          <TextWithCode key={i} text={words} />
        ),
      )}
    </>
  );
}

/** A button within a sentence: its words wrap with the sentence, which a button's don't. */
function InlineLink({ children, onOpen }: { children: string; onOpen: () => void }) {
  return (
    <span
      role="button"
      tabIndex={0}
      className="link"
      onClick={onOpen}
      onKeyDown={event => {
        if (event.key === 'Enter' || event.key === ' ') {
          event.preventDefault();
          onOpen();
        }
      }}
    >
      {children}
    </span>
  );
}

/** Text whose parts between backticks are drawn as code. */
export function TextWithCode({ text }: { text: string }) {
  const parts = text.split('`');
  // An unpaired backtick belongs to a name in the text.
  return parts.length % 2 === 0
    ? joinUnits(text)
    : parts.map((part, i) => (i % 2 ? <code key={i}>{part}</code> : joinUnits(part)));
}

/** Return the view, parameters, and trace that a link such as `operators?search=conv&run=a` selects. */
export function parseLink(link: string) {
  const [view = '', query = ''] = link.split('?', 2);
  const { run, worker, span, ...params } = Object.fromEntries(new URLSearchParams(query));
  return { view, params, ...(run && { run }), ...(worker && { worker }), ...(span && { span }) };
}
