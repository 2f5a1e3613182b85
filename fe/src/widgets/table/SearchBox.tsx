import { useEffect, useRef, useState } from 'react';
import { takesText } from '../../base/browser/host';
import type { TableSearch } from '../../state/table';
import { RegexToggle, SearchField } from '../inputs/SearchField';
import { createMatcher } from './search';

interface Props {
  search: TableSearch;
  onSearch: (search: TableSearch) => void;
  placeholder: string;
  /** Whether `f` focuses the search; false where the view uses the key itself. */
  hotkey?: boolean;
  /** Without regular expressions. */
  plain?: boolean;
}

/** Pause in typing after which the search runs, ms. */
const DEBOUNCE_MS = 120;

/** The search field of a table; it filters while one types, and Escape clears it. */
export function SearchBox({ search, onSearch, placeholder, hotkey = true, plain = false }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const [draft, setDraft] = useState(search.text);
  const [lastText, setLastText] = useState(search.text);
  if (lastText !== search.text) {
    setLastText(search.text);
    // A search that comes late may have been typed on meanwhile: what was typed last wins.
    if (draft === lastText) {
      setDraft(search.text);
    }
  }
  const { error } = createMatcher({ ...search, text: draft });

  useEffect(() => {
    if (draft === search.text) {
      return;
    }
    const timer = setTimeout(() => onSearch({ ...search, text: draft }), DEBOUNCE_MS);
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
