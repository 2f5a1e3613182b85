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
  /** What the field says that narrows the list; without it there is none. */
  find?: string;
  value: string | undefined;
  options: readonly Option[];
  search: string;
  onSearch: (text: string) => void;
}

const MOST = 200;

/** What a button of choices drops down: the first options that match the search. */
export function Listed({ name, find, value, options, search, onSearch }: Props) {
  const matches = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    const text = ({ label, detail }: Option) => `${label} ${detail ?? ''}`.toLowerCase();
    return wanted ? options.filter(option => text(option).includes(wanted)) : options;
  }, [options, search]);
  const listed = (
    <Combobox.Options aria-label={name} mah={320} style={{ overflowY: 'auto' }} tabIndex={0}>
      {matches.slice(0, MOST).map(option => (
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
      {matches.length === 0 && <Combobox.Empty>Nothing matches</Combobox.Empty>}
      {matches.length > MOST && (
        <div className={css.more}>{formatCount(matches.length - MOST)} more: type to narrow</div>
      )}
    </Combobox.Options>
  );
  return (
    <Combobox.Dropdown className={css.list}>
      {find === undefined ? (
        listed
      ) : (
        <div role="dialog" aria-label={find}>
          <Combobox.Search
            value={search}
            onChange={event => onSearch(event.currentTarget.value)}
            placeholder={find}
            aria-label={find}
          />
          {listed}
        </div>
      )}
    </Combobox.Dropdown>
  );
}
