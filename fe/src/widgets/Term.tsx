import { HoverCard } from '@mantine/core';
import { Button } from './inputs/Button';
import { GLOSSARY, type Entry, type TermId } from '../base/glossary';
import css from './Term.module.css';

/** A question mark that explains a term: definition, formula, caveat; opens on hover and on focus. */
export function Term({ id }: { id: TermId }) {
  const entry: Entry = GLOSSARY[id];
  return <Tip label={`What is ${entry.title}?`} entry={entry} />;
}

export function Tip({ label, entry }: { label: string; entry: Entry }) {
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
