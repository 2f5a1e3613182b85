// A name in a narrow place: where others beside it begin alike, it is cut so that the difference stays.
import { createContext, use, useMemo, type ReactNode } from 'react';
import { splitNames } from '../base/nameParts';
import css from './Name.module.css';

const PartsContext = createContext<ReadonlyMap<string, readonly string[]>>(new Map());

/** The names that are seen together: each `Name` inside stays different from the others. */
export function Names({ of, children }: { of: readonly string[]; children: ReactNode }) {
  const parts = useMemo(() => splitNames(of), [of]);
  return <PartsContext value={parts}>{children}</PartsContext>;
}

/** Parts of fewer letters are never cut: the first one, and the others. */
const MIN_FIRST = 12;
const MIN_OTHERS = 9;

interface Props {
  text: string;
  /** Where the end begins that stays as long as possible, where no other name tells what to keep. */
  end?: number;
  /** The tooltip, where it isn't the text. */
  title?: string;
  className?: string;
}

/** A name in one line. Copying and screen readers get all of it. */
export function Name({ text, end = 0, title = text, className = '' }: Props) {
  const parts = use(PartsContext).get(text) ?? (end > 0 ? [text.slice(0, end), text.slice(end)] : undefined);
  if (!parts) {
    return (
      <span className={`clip ${className}`} title={title}>
        {text}
      </span>
    );
  }
  return (
    <span className={`${css.name} ${className}`} title={title}>
      <span className="visually-hidden">{text}</span>
      <span className={css.parts} aria-hidden>
        {parts.map((part, i) => (
          <span key={i} className={part.length < (i === 0 ? MIN_FIRST : MIN_OTHERS) ? css.whole : undefined}>
            {part}
          </span>
        ))}
      </span>
    </span>
  );
}
