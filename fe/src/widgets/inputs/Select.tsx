import { Combobox, useCombobox } from '@mantine/core';
import { useId, useMemo, useState, type KeyboardEvent } from 'react';
import { Icon } from '../Icon';
import { Button } from './Button';
import { Listed } from './Listed';
import css from './Select.module.css';

interface Props<T extends string> {
  label: string;
  /** What it is called where the label says too little or there is none. */
  name?: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

/** From so many options on, the list has a field that narrows it. */
const MANY = 13;

/** A small choice beside its name. */
export function Select<T extends string>({ label, name = label, value, options, onChange }: Props<T>) {
  const id = useId();
  const [search, setSearch] = useState('');
  const many = options.length >= MANY;
  const combobox = useCombobox({
    onDropdownOpen: () => {
      if (many) {
        combobox.focusSearchInput();
      }
      combobox.selectActiveOption();
    },
    onDropdownClose: () => {
      combobox.resetSelectedOption();
      if (many) {
        combobox.focusTarget();
      }
      setSearch('');
    },
  });
  const listed = useMemo(() => options.map(([value, label]) => ({ value, label })), [options]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!combobox.dropdownOpened) {
      return;
    }
    // An open list keeps its keys: Escape closes it and no more, letters are no shortcuts of the page.
    event.stopPropagation();
    if (event.key === 'Home' || event.key === 'End') {
      event.preventDefault(); // The page stays where it is.
      combobox.selectOption(event.key === 'Home' ? 0 : options.length - 1);
      return;
    }
    if (event.key.length !== 1 || event.key === ' ' || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const starts = ([, title]: readonly [T, string]) =>
      title.toLowerCase().startsWith(event.key.toLowerCase());
    const after = combobox.getSelectedOptionIndex() + 1;
    const next = options.findIndex((option, at) => at >= after && starts(option));
    const found = next < 0 ? options.findIndex(starts) : next;
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
              if (!many && !event.relatedTarget?.closest('[role=listbox]')) {
                combobox.closeDropdown();
              }
            }}
          >
            <span className={css.value}>{options.find(([key]) => key === value)?.[1] ?? value}</span>
            <Icon name="chevron" size={12} />
          </Button>
        </Combobox.Target>
        <Listed
          name={`${name}: what there is`}
          find={many ? `Find: ${name.toLowerCase()}` : undefined}
          value={value}
          options={listed}
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
