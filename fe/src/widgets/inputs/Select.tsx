import { Combobox, useCombobox } from '@mantine/core';
import { useId, useMemo, useState, type KeyboardEvent } from 'react';
import { Icon } from '../Icon';
import { Button } from './Button';
import { OptionList } from './OptionList';
import css from './Select.module.css';

interface Props<T extends string> {
  label: string;
  /** The accessible name, where the label is missing or too short. */
  name?: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

/** Fewest options for which the list has a search field. */
const MIN_SEARCHABLE = 13;

/** A labeled button that drops down a list of options. */
export function Select<T extends string>({ label, name = label, value, options, onChange }: Props<T>) {
  const id = useId();
  const [search, setSearch] = useState('');
  const searchable = options.length >= MIN_SEARCHABLE;
  const combobox = useCombobox({
    onDropdownOpen: () => {
      if (searchable) {
        combobox.focusSearchInput();
      }
      combobox.selectActiveOption();
    },
    onDropdownClose: () => {
      combobox.resetSelectedOption();
      if (searchable) {
        combobox.focusTarget();
      }
      setSearch('');
    },
  });
  const listOptions = useMemo(() => options.map(([value, label]) => ({ value, label })), [options]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!combobox.dropdownOpened) {
      return;
    }
    // Keys of an open list stay in it: Escape only closes the list, and letters are no shortcuts of the page.
    event.stopPropagation();
    if (event.key === 'Home' || event.key === 'End') {
      event.preventDefault(); // The page doesn't scroll.
      combobox.selectOption(event.key === 'Home' ? 0 : options.length - 1);
      return;
    }
    if (event.key.length !== 1 || event.key === ' ' || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const startsWithKey = ([, title]: readonly [T, string]) =>
      title.toLowerCase().startsWith(event.key.toLowerCase());
    const start = combobox.getSelectedOptionIndex() + 1;
    const next = options.findIndex((option, i) => i >= start && startsWithKey(option));
    const found = next < 0 ? options.findIndex(startsWithKey) : next;
    if (found >= 0) {
      combobox.selectOption(found);
    }
  };
  return (
    <span className={css.root}>
      {label && (
        <span id={id} className="dim">
          {label}
        </span>
      )}
      <Combobox
        store={combobox}
        width="max-content"
        position="bottom-start"
        shadow="md"
        onOptionSubmit={picked => {
          onChange(picked as T);
          combobox.closeDropdown();
        }}
      >
        <Combobox.Target targetType="button" withExpandedAttribute>
          <Button
            className={css.button}
            aria-label={name === label ? undefined : name}
            aria-labelledby={name === label ? id : undefined}
            data-value={value}
            onClick={() => combobox.toggleDropdown()}
            onKeyDown={onKeyDown}
            onBlur={event => {
              if (!searchable && !event.relatedTarget?.closest('[role=listbox]')) {
                combobox.closeDropdown();
              }
            }}
          >
            <span className={css.value}>{options.find(([key]) => key === value)?.[1] ?? value}</span>
            <Icon name="chevron" size={12} />
          </Button>
        </Combobox.Target>
        <OptionList
          name={`${name} options`}
          searchLabel={searchable ? `Find: ${name.toLowerCase()}` : undefined}
          value={value}
          options={listOptions}
          search={search}
          onSearch={text => {
            setSearch(text);
            combobox.selectFirstOption();
          }}
        />
      </Combobox>
    </span>
  );
}
