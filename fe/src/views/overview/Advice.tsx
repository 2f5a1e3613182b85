import { useLayoutEffect, useState, type ReactNode } from 'react';
import type { Recommendation } from '../../api/types';
import { formatRatio } from '../../base/format';
import type { Phrase } from '../../base/text';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { CopyButton } from '../../widgets/inputs/CopyButton';
import { Icon } from '../../widgets/Icon';
import { ReservedWidth } from '../../widgets/Pending';
import { Sentence, parseLink } from '../../widgets/Sentence';
import { Tip } from '../../widgets/Term';
import css from './Advice.module.css';

/** Most pieces of advice shown as cards; the others are lines that unfold. */
const CARDS = 3;
/** Smallest width of a card and the gap between two, in pixels. */
const CARD_WIDTH = 300;
const GAP = 16;

interface Props {
  items: Recommendation[];
  /** Why there is no advice, if there is none. */
  none: readonly Phrase[];
  /** Why the savings could not be estimated. */
  error: string | undefined;
  /** What is still being computed and may add cards or reorder them; their width is reserved. */
  coming: 'replay' | 'ranks' | null;
}

/** Letters reserved for a card that may be added. */
const CARD = 800;

const WORKING = {
  replay: 'Replaying the schedule to see what each change saves…',
  ranks: 'Comparing the ranks…',
};
/** Most cards that may be added: the ranks add one, about a straggler. */
const ADDED_CARDS = { replay: CARDS, ranks: 1 };

/** What to do first, largest saving first. */
export function Advice({ items, none, error, coming }: Props) {
  const [list, setList] = useState<HTMLElement | null>(null);
  const columns = useColumns(list);
  if (items.length === 0 && (coming === null || (coming === 'replay' && none.length > 0))) {
    return (
      <p className={css.none} data-part="advice">
        <span>
          <Sentence text={none} />
        </span>
      </p>
    );
  }
  const missing = coming ? Math.min(ADDED_CARDS[coming], Math.max(0, columns - items.length)) : 0;
  const cards = items.slice(0, columns);
  const rest = items.slice(columns);
  return (
    <section
      aria-label="What to do"
      aria-busy={coming !== null}
      data-part="advice"
      className={coming ? css.coming : undefined}
    >
      <ol
        ref={setList}
        className={css.cards}
        style={{ gridTemplateColumns: `repeat(${cards.length + missing}, minmax(0, 1fr))` }}
      >
        {cards.map((item, i) => (
          <Card key={item.id} item={item} rank={i + 1} />
        ))}
        {Array.from({ length: missing }, (_, i) => (
          <li key={i} className={css.card} aria-hidden="true">
            <ReservedWidth letters={CARD} />
          </li>
        ))}
      </ol>
      {rest.length > 0 && (
        <ul className={css.rest}>
          {rest.map(item => (
            <li key={item.id}>
              <details>
                <summary>
                  <Sentence text={item.title} /> <span className="dim">{item.gain}</span>
                </summary>
                <Reasons item={item} />
              </details>
              <Show evidence={item.evidence} look="link" />
            </li>
          ))}
        </ul>
      )}
      {(coming ?? error) && <p className={css.status}>{coming ? WORKING[coming] : error}</p>}
    </section>
  );
}

function Card({ item, rank }: { item: Recommendation; rank: number }) {
  return (
    <li className={css.card}>
      <header>
        <span className={css.rank}>{rank}</span>
        <h3 aria-level={2}>
          <Sentence text={item.title} />
        </h3>
        <Tip label="Why is this shown?" entry={{ title: 'Shown because', text: `${item.rule}.` }} />
      </header>
      <p className={css.gain}>{item.gain}</p>
      {item.gain_share !== null && item.gain_share !== undefined && (
        <span className={css.bar} role="img" aria-label={`${formatRatio(item.gain_share)} of the step`}>
          <i style={{ width: `${Math.min(item.gain_share, 1) * 100}%` }} />
        </span>
      )}
      <Reasons item={item}>
        <Show evidence={item.evidence} look="framed" />
      </Reasons>
    </li>
  );
}

/** The evidence of a piece of advice, its code, and when it doesn't apply. */
function Reasons({ item, children }: { item: Recommendation; children?: ReactNode }) {
  return (
    <>
      <p>
        <Sentence text={item.text} />
      </p>
      {item.code && <pre>{item.code}</pre>}
      <div className={css.actions}>
        {children}
        {item.code && <CopyButton text={() => item.code} label="Copy code" showLabel />}
      </div>
      <p className={css.exception}>
        <b>Doesn&apos;t apply if</b> {item.exception}
      </p>
    </>
  );
}

/** Returns how many cards fit in a row; CARDS while its width is unknown. */
function useColumns(row: HTMLElement | null) {
  const [columns, setColumns] = useState(CARDS);
  useLayoutEffect(() => {
    if (!row) {
      return undefined;
    }
    const measure = () => {
      const fitting = Math.floor((row.offsetWidth + GAP) / (CARD_WIDTH + GAP));
      setColumns(row.offsetWidth ? Math.min(CARDS, Math.max(1, fitting)) : CARDS);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(row);
    return () => observer.disconnect();
  }, [row]);
  return columns;
}

function Show({ evidence, look }: { evidence: string; look: 'framed' | 'link' }) {
  const { select } = useSelection();
  return (
    <Button look={look} onClick={() => select(parseLink(evidence))}>
      {look === 'framed' && <Icon name="external" size={14} />}Show it
    </Button>
  );
}
