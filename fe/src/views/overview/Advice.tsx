import type { Recommendation } from '../../api/types';
import { formatRatio } from '../../base/format';
import type { Phrase } from '../../base/text';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { CopyButton } from '../../widgets/inputs/CopyButton';
import { Icon } from '../../widgets/Icon';
import { Room } from '../../widgets/Room';
import { Sentence, targetOf } from '../../widgets/Sentence';
import { Tip } from '../../widgets/Term';
import css from './Advice.module.css';

/** So many pieces of advice have a card; the rest a line each. */
const CARDS = 3;

interface Props {
  items: Recommendation[];
  /** Where the gains come from. */
  gains: readonly Phrase[];
  /** Why there is nothing, where there is nothing. */
  none: readonly Phrase[];
  /** What tells more, and so the order of the cards, is still to come: those that may turn up have their room. */
  coming: 'replay' | 'ranks' | null;
}

/** Letters of the words below the cards. */
const GAINS = 140;
/** Letters of a card that may turn up. */
const CARD = 800;

const WORKING = {
  replay: 'Replaying the schedule to see what each change gains…',
  ranks: 'Comparing the ranks…',
};
/** So many cards may turn up: one is about a late rank. */
const TURN_UP = { replay: CARDS, ranks: 1 };

/** What to do first, by gain. */
export function Advice({ items, gains, none, coming }: Props) {
  if (items.length === 0 && (coming === null || (coming === 'replay' && none.length > 0))) {
    return (
      <p className={css.none} data-part="advice">
        <Sentence text={none} />
      </p>
    );
  }
  const missing = coming ? Math.min(TURN_UP[coming], Math.max(0, CARDS - items.length)) : 0;
  const rest = items.slice(CARDS);
  return (
    <section
      aria-label="What to do"
      aria-busy={coming !== null}
      data-part="advice"
      className={coming ? css.coming : undefined}
    >
      <ol className={css.cards}>
        {items.slice(0, CARDS).map((item, i) => (
          <Card key={item.id} item={item} rank={i + 1} />
        ))}
        {Array.from({ length: missing }, (_, i) => (
          <li key={i} className={css.card} aria-hidden="true">
            <Room letters={CARD} />
          </li>
        ))}
      </ol>
      {rest.length > 0 && (
        <ul className={css.rest}>
          {rest.map(item => (
            <li key={item.id}>
              <Sentence text={item.title} /> <span className="dim">{item.gain}</span>
              <Show evidence={item.evidence} look="link" />
            </li>
          ))}
        </ul>
      )}
      <p className={css.gains}>
        {coming ? (
          <>
            {WORKING[coming]} <Room letters={GAINS} />
          </>
        ) : (
          <Sentence text={gains} />
        )}
      </p>
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
      <p>
        <Sentence text={item.text} />
      </p>
      {item.code && <pre>{item.code}</pre>}
      <div className={css.actions}>
        <Show evidence={item.evidence} look="framed" />
        {item.code && <CopyButton text={() => item.code} label="Copy code" showLabel />}
      </div>
      <p className={css.exception}>
        <b>Does not apply if</b> {item.exception}
      </p>
    </li>
  );
}

function Show({ evidence, look }: { evidence: string; look: 'framed' | 'link' }) {
  const { select } = useSelection();
  return (
    <Button look={look} onClick={() => select(targetOf(evidence))}>
      {look === 'framed' && <Icon name="external" size={14} />}Show it
    </Button>
  );
}
