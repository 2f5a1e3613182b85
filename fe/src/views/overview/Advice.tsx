import type { ReactNode } from 'react';
import type { Recommendation } from '../../api/types';
import { formatDuration, formatLimit, formatRatioLimit, roundDown } from '../../base/format';
import { capitalize, plainText, type Phrase } from '../../base/text';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { CopyButton } from '../../widgets/inputs/CopyButton';
import { Icon } from '../../widgets/Icon';
import { ReservedWidth } from '../../widgets/Pending';
import { Sentence, parseLink } from '../../widgets/Sentence';
import { Tip } from '../../widgets/Term';
import { useStepWords } from '../../state/steps';
import { RankPicture, type RankPictureSource } from './RankPicture';
import type { Shown } from './select';
import css from './Advice.module.css';

/** Rows that may be added while something is still computed: by a replay, and by the ranks (about a straggler). */
const ADDED_ROWS = { replay: 2, ranks: 1 };
/** Letters reserved in an open row that may come first: for the evidence, and for when it doesn't apply. */
const EVIDENCE_LETTERS = 230;
const EXCEPTION_LETTERS = 150;

const WORKING = {
  replay: 'Replaying the schedule to see what each change saves…',
  ranks: 'Comparing the ranks…',
};

/** Smallest share of a step that a known fix has to save to be listed. */
const MIN_GAIN = '2%';

/** What follows the list, in its last row. */
const COMPLETE = {
  title: 'Nothing else stands out',
  line: `No other known fix would save ${MIN_GAIN} or more.`,
};
const UNFINISHED = {
  replay: { title: 'More may follow', line: 'What other fixes would save is being estimated.' },
  ranks: { title: 'More may follow', line: 'The other ranks may show a straggler.' },
};
const UNESTIMATED = { title: 'More may be worth it', line: 'What other fixes would save is unknown.' };

interface Props {
  items: Recommendation[];
  /** Why there is no advice, if there is none. */
  none: readonly Phrase[];
  /** Why the savings could not be estimated. */
  error: string | undefined;
  /** What is still being computed and may add or reorder rows; their height is reserved. */
  coming: 'replay' | 'ranks' | null;
  /** The step that savings are drawn as a share of. */
  step: Shown | null;
  /** The ranks that a late one is drawn beside, if they are few enough. */
  ranks: RankPictureSource | null;
}

/** What to change first, largest saving first, as rows on one scale: the length of a step. */
export function Advice({ items, none, error, coming, step, ranks }: Props) {
  const { isOpen, toggle } = useOpenRows(items);
  if (items.length === 0 && (coming === null || (coming === 'replay' && none.length > 0))) {
    return (
      <p className={css.none} data-part="advice">
        <span>
          <Sentence text={none} />
        </span>
      </p>
    );
  }
  const rest = coming ? UNFINISHED[coming] : error === undefined ? COMPLETE : UNESTIMATED;
  const added = coming ? Math.max(0, ADDED_ROWS[coming] - (coming === 'replay' ? items.length : 0)) : 0;
  return (
    <section
      className={`panel ${css.advice} ${coming ? css.coming : ''}`}
      aria-label="What to change first"
      aria-busy={coming !== null}
      data-part="advice"
    >
      <header className={css.head}>
        <h2>What to change first</h2>
        <span className={css.note}>
          {coming ? WORKING[coming] : (error ?? 'savings overlap, so they don’t add up')}
        </span>
        {step && (
          <span className={css.scale} aria-hidden="true">
            <span>0</span>
            <span>
              {step.title.charAt(0).toLowerCase() + step.title.slice(1)}, {formatDuration(step.duration)}
            </span>
          </span>
        )}
      </header>
      <ol className={css.rows}>
        {items.map((item, i) => (
          <Row
            key={item.id}
            item={item}
            rank={i + 1}
            step={step}
            ranks={ranks}
            open={isOpen(item.id)}
            onToggle={() => toggle(item.id)}
          />
        ))}
        {Array.from({ length: added }, (_, i) => (
          <ReservedRow key={i} open={items.length + i === 0} />
        ))}
        <li className={css.row} data-part="advice-rest">
          <div className={css.title}>
            <span className={css.rank}>{items.length + 1}</span>
            <h3 aria-level={2}>{rest.title}</h3>
          </div>
          <p className={css.line}>{rest.line}</p>
        </li>
      </ol>
    </section>
  );
}

/** The height of a row that may come. */
function ReservedRow({ open }: { open: boolean }) {
  return (
    <li className={css.row} aria-hidden="true">
      <div className={css.title} />
      {open ? (
        <div className={css.body}>
          <div className={css.reasons}>
            <p>
              <ReservedWidth letters={EVIDENCE_LETTERS} />
            </p>
            <p>
              <ReservedWidth letters={EXCEPTION_LETTERS} />
            </p>
            <div className={css.actions} />
          </div>
        </div>
      ) : (
        <p className={css.line}>
          <ReservedWidth letters={1} />
        </p>
      )}
    </li>
  );
}

interface RowProps {
  item: Recommendation;
  rank: number;
  step: Shown | null;
  ranks: RankPictureSource | null;
  open: boolean;
  onToggle: () => void;
}

function Row({ item, rank, step, ranks, open, onToggle }: RowProps) {
  const id = `advice-${item.id}`;
  return (
    <li className={`${css.row} ${open ? css.open : ''}`} data-part="advice-row">
      <h3 aria-level={2} className={css.heading}>
        <Button look="bare" className={css.title} aria-expanded={open} aria-controls={id} onClick={onToggle}>
          <Icon name="right" size={14} />
          <span className={css.rank}>{rank}</span>
          <span className={css.words}>{plainText(item.title)}</span>
        </Button>
      </h3>
      <Gain item={item} />
      {open ? (
        <div id={id} className={css.body}>
          <Reasons item={item} />
          {item.id === 'straggler' && ranks ? (
            <RankPicture ranks={ranks} />
          ) : (
            <Picture item={item} step={step} />
          )}
        </div>
      ) : (
        <p id={id} className={`${css.line} clip`}>
          <Sentence text={item.text} />
        </p>
      )}
    </li>
  );
}

/** What a change saves: a bar on the scale of a step, and the time. */
function Gain({ item }: { item: Recommendation }) {
  const { gain_ns: ns, gain_share: share } = item;
  const say = useStepWords();
  if (typeof ns !== 'number') {
    return <span className={css.gain}>{item.gain}</span>;
  }
  const known = typeof share === 'number';
  return (
    <>
      {known && (
        <span className={css.bar} role="img" aria-label={say(`${formatRatioLimit(share)} of the step`)}>
          <i style={{ width: `${Math.min(share, 1) * 100}%` }} />
        </span>
      )}
      <span className={css.gain} title={item.gain}>
        {item.gain_is_limit ? formatLimit(ns) : `≥ ${formatDuration(roundDown(ns))}`}
        {known && <span className="dim"> {formatRatioLimit(share)}</span>}
      </span>
    </>
  );
}

/** The evidence of a piece of advice, its code, and when it doesn't apply. */
function Reasons({ item }: { item: Recommendation }) {
  const { select } = useSelection();
  return (
    <div className={css.reasons}>
      <p>
        <Sentence text={item.text} />
      </p>
      {item.code && <pre>{item.code}</pre>}
      <p className={css.exception}>
        {capitalize(item.gain)}. Doesn&apos;t apply if {item.exception}{' '}
        <Tip label="Why is this shown?" entry={{ title: 'Shown because', text: `${item.rule}.` }} />
      </p>
      <div className={css.actions}>
        <Button onClick={() => select(parseLink(item.evidence))}>
          <Icon name="external" size={14} />
          Show it
        </Button>
        {item.code && <CopyButton text={() => item.code} label="Copy code" showLabel />}
      </div>
    </div>
  );
}

/** The step as it is and without what the advice takes away, on the scale of the bars above. */
function Picture({ item, step }: { item: Recommendation; step: Shown | null }): ReactNode {
  const { gain_ns: ns } = item;
  if (!step || typeof ns !== 'number' || step.duration <= 0) {
    return null;
  }
  const left = Math.max(step.duration - ns, 0);
  return (
    <dl className={css.picture}>
      <dt>now</dt>
      <dd>
        <i style={{ width: '100%' }} />
      </dd>
      <dd>{formatDuration(step.duration)}</dd>
      <dt>after</dt>
      <dd>
        <i className={css.then} style={{ width: `${(left / step.duration) * 100}%` }} />
        <i className={css.saved} style={{ width: `${(1 - left / step.duration) * 100}%` }} />
      </dd>
      <dd>
        {formatDuration(left)} {item.gain_is_limit ? 'at best' : 'or less'}
      </dd>
    </dl>
  );
}

/** Which rows are unfolded, as the address has it: the first by default. */
function useOpenRows(items: readonly Recommendation[]) {
  const { selection, select } = useSelection();
  const first = items[0]?.id;
  const open = selection.params.advice?.split(',') ?? (first === undefined ? [] : [first]);
  return {
    isOpen: (id: string) => open.includes(id),
    toggle: (id: string) => {
      const now = open.includes(id) ? open.filter(each => each !== id) : [...open, id];
      const { advice: _, ...params } = selection.params;
      const isDefault = now.length === 1 && now[0] === first;
      select({ params: isDefault ? params : { ...params, advice: now.join(',') } }, true);
    },
  };
}
