import { useEffect, useRef, useState } from 'react';
import { Icon } from '../Icon';
import { matcher, type Search } from './search';
import css from './SearchBox.module.css';

interface Props {
  search: Search;
  onSearch: (search: Search) => void;
  placeholder: string;
  /** Whether `f` jumps here; not where the view has its own use for the key. */
  hotkey?: boolean;
  /** Without regular expressions. */
  plain?: boolean;
}

const PAUSE_MS = 120;

/** Filters while it is typed in; Escape empties it. */
export function SearchBox({ search, onSearch, placeholder, hotkey = true, plain = false }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const [draft, setDraft] = useState(search.text);
  const [known, setKnown] = useState(search.text);
  if (known !== search.text) {
    setKnown(search.text);
    setDraft(search.text);
  }
  const { error } = matcher({ ...search, text: draft });

  useEffect(() => {
    if (draft === search.text) {
      return;
    }
    const timer = setTimeout(() => onSearch({ ...search, text: draft }), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft, search, onSearch]);

  useEffect(() => {
    if (!hotkey) {
      return;
    }
    const onKey = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
      if (event.key === 'f' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        input.current?.select();
      }
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [hotkey]);

  return (
    <span className={`${css.box} ${error ? css.wrong : ''}`}>
      <Icon name="search" size={14} />
      <input
        ref={input}
        type="text"
        value={draft}
        placeholder={placeholder}
        aria-label={placeholder}
        aria-invalid={error !== undefined}
        title={error}
        spellCheck={false}
        onChange={event => setDraft(event.target.value)}
        onKeyDown={event => {
          if (event.key === 'Escape') {
            setDraft('');
          }
        }}
      />
      {!draft && hotkey && <kbd>f</kbd>}
      {!plain && (
        <button
          type="button"
          className={css.toggle}
          aria-pressed={search.regex}
          title="Regular expression"
          aria-label="Regular expression"
          onClick={() => onSearch({ text: draft, regex: !search.regex })}
        >
          .*
        </button>
      )}
      {error && (
        <span className={css.error} role="alert">
          {error}
        </span>
      )}
    </span>
  );
}
