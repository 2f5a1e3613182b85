import { useEffect, useRef, useState } from 'react';
import { takesText } from '../../base/browser/typing';
import { RegexToggle, SearchField } from '../inputs/SearchField';
import { matcher, type Search } from './search';

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
      if (
        event.key === 'f' &&
        !takesText(event.target) &&
        !event.ctrlKey &&
        !event.metaKey &&
        !event.altKey
      ) {
        event.preventDefault();
        input.current?.select();
      }
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [hotkey]);

  return (
    <SearchField
      ref={input}
      value={draft}
      placeholder={placeholder}
      error={error}
      title={error}
      tools={
        <>
          {!draft && hotkey && <kbd>f</kbd>}
          {!plain && (
            <RegexToggle
              pressed={search.regex}
              title="Regular expression"
              onToggle={regex => onSearch({ text: draft, regex })}
            />
          )}
        </>
      }
      onChange={setDraft}
      onKeyDown={event => {
        if (event.key === 'Escape') {
          setDraft('');
        }
      }}
    />
  );
}
