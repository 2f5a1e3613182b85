import { Combobox, useCombobox } from '@mantine/core';
import { useState } from 'react';
import { Icon } from '../Icon';
import { Button } from './Button';
import { OptionList, type Option } from './OptionList';
import css from './Picker.module.css';

interface Props {
  name: string;
  value: string | undefined;
  options: Option[];
  note?: string;
  onPick: (value: string) => void;
}

/** A button that drops down a searchable list; with thousands of options, only the first matches are drawn. */
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
  const current = options.find(option => option.value === value);
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
      <OptionList
        name={`${name} options`}
        searchLabel={`Find a ${name.toLowerCase()}`}
        value={value}
        options={options}
        search={search}
        onSearch={text => {
          setSearch(text);
          combobox.selectFirstOption();
        }}
      />
    </Combobox>
  );
}
