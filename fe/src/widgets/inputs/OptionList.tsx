import { Combobox } from '@mantine/core';
import { useMemo, type ReactNode } from 'react';
import { formatCount } from '../../base/format';
import css from './Picker.module.css';

export interface Option {
  value: string;
  label: string;
  mark?: ReactNode;
  detail?: string;
}

interface Props {
  name: string;
  /** The placeholder of the search field; without it there is no field. */
  searchLabel?: string;
  value: string | undefined;
  options: readonly Option[];
  search: string;
  onSearch: (text: string) => void;
}

/** Most options drawn at once. */
const MAX_OPTIONS = 200;

/** The list that a Picker or Select drops down: the first options that match the search. */
export function OptionList({ name, searchLabel, value, options, search, onSearch }: Props) {
  const matches = useMemo(() => {
    const query = search.trim().toLowerCase();
    const text = ({ label, detail }: Option) => `${label} ${detail ?? ''}`.toLowerCase();
    return query ? options.filter(option => text(option).includes(query)) : options;
  }, [options, search]);
  const list = (
    <Combobox.Options aria-label={name} mah={320} style={{ overflowY: 'auto' }} tabIndex={0}>
      {matches.slice(0, MAX_OPTIONS).map(option => (
        <Combobox.Option
          key={option.value}
          value={option.value}
          data-value={option.value}
          active={option.value === value}
        >
          {option.mark}
          <span className={css.label} title={option.label}>
            {option.label}
          </span>
          <span className={css.detail}>{option.detail}</span>
        </Combobox.Option>
      ))}
      {matches.length === 0 && <Combobox.Empty>No matches</Combobox.Empty>}
      {matches.length > MAX_OPTIONS && (
        <div className={css.more}>
          {formatCount(matches.length - MAX_OPTIONS)} more; type to narrow the list
        </div>
      )}
    </Combobox.Options>
  );
  return (
    <Combobox.Dropdown className={css.list}>
      {searchLabel === undefined ? (
        list
      ) : (
        <div role="dialog" aria-label={searchLabel}>
          <Combobox.Search
            value={search}
            onChange={event => onSearch(event.currentTarget.value)}
            placeholder={searchLabel}
            aria-label={searchLabel}
          />
          {list}
        </div>
      )}
    </Combobox.Dropdown>
  );
}
