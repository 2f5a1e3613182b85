import { HoverCard } from '@mantine/core';
import { GLOSSARY, type GlossaryEntry, type TermId } from '../base/glossary';
import { useStepWords } from '../state/steps';
import { Button } from './inputs/Button';
import css from './Term.module.css';

/** A question mark that explains a term of the glossary. */
export function Term({ id }: { id: TermId }) {
  const say = useStepWords();
  const { title, text, formula, caveat }: GlossaryEntry = GLOSSARY[id];
  const entry = {
    title: say(title),
    text: say(text),
    ...(formula && { formula: say(formula) }),
    ...(caveat && { caveat: say(caveat) }),
  };
  return <Tip label={`What is ${entry.title}?`} entry={entry} />;
}

/** A question mark that opens a card on hover and on focus. */
export function Tip({ label, entry }: { label: string; entry: GlossaryEntry }) {
  return (
    <HoverCard width={320} shadow="md" openDelay={120} withinPortal>
      <HoverCard.Target>
        <Button look="bare" className={css.tip} aria-label={label}>
          ?
        </Button>
      </HoverCard.Target>
      <HoverCard.Dropdown className={css.card}>
        <strong>{entry.title}</strong>
        <p>{entry.text}</p>
        {entry.formula && <p className={css.formula}>{entry.formula}</p>}
        {entry.caveat && <p className="dim">{entry.caveat}</p>}
      </HoverCard.Dropdown>
    </HoverCard>
  );
}
