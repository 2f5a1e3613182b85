import { Combobox, useCombobox } from '@mantine/core';
import { useMemo, useState, type ReactNode } from 'react';
import { formatCount } from '../../base/format';
import { Button } from './Button';
import { Icon } from '../Icon';
import css from './Picker.module.css';

export interface Option {
  value: string;
  label: string;
  mark?: ReactNode;
  detail?: string;
}

interface Props {
  name: string;
  value: string | undefined;
  options: Option[];
  note?: string;
  onPick: (value: string) => void;
}

const MOST = 200;

/** A searchable list behind a button; stays quick with thousands of options by showing the first matches. */
export function Picker({ name, value, options, note, onPick }: Props) {
  const [search, setSearch] = useState('');
  const combobox = useCombobox({
    onDropdownOpen: () => {
      combobox.focusSearchInput();
      combobox.selectActiveOption();
    },
    onDropdownClose: () => {
      combobox.resetSelectedOption();
      combobox.focusTarget();
      setSearch('');
    },
  });
  const matches = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    const text = ({ label, detail }: Option) => `${label} ${detail ?? ''}`.toLowerCase();
    return wanted ? options.filter(option => text(option).includes(wanted)) : options;
  }, [options, search]);
  const current = options.find(option => option.value === value);
  const find = `Find a ${name.toLowerCase()}`;
  return (
    <Combobox
      store={combobox}
      width={380}
      position="bottom-start"
      shadow="md"
      onOptionSubmit={picked => {
        onPick(picked);
        combobox.closeDropdown();
      }}
    >
      <Combobox.Target targetType="button">
        <Button className={css.picker} onClick={() => combobox.toggleDropdown()}>
          <span className="dim">{name}</span>
          <span className={css.picked}>{current?.label ?? value ?? '–'}</span>
          {note && <span className="dim">{note}</span>}
          <Icon name="chevron" size={14} />
        </Button>
      </Combobox.Target>
      <Combobox.Dropdown className={css.list}>
        <div role="dialog" aria-label={find}>
          <Combobox.Search
            value={search}
            onChange={event => {
              setSearch(event.currentTarget.value);
              combobox.selectFirstOption();
            }}
            placeholder={find}
            aria-label={find}
          />
          <Combobox.Options
            aria-label={`${name}: what there is`}
            mah={320}
            style={{ overflowY: 'auto' }}
            tabIndex={0}
          >
            {matches.slice(0, MOST).map(option => (
              <Combobox.Option key={option.value} value={option.value} active={option.value === value}>
                {option.mark}
                <span className={css.label} title={option.label}>
                  {option.label}
                </span>
                <span className={css.detail}>{option.detail}</span>
              </Combobox.Option>
            ))}
            {matches.length === 0 && <Combobox.Empty>Nothing matches</Combobox.Empty>}
            {matches.length > MOST && (
              <div className={css.more}>{formatCount(matches.length - MOST)} more: type to narrow</div>
            )}
          </Combobox.Options>
        </div>
      </Combobox.Dropdown>
    </Combobox>
  );
}
