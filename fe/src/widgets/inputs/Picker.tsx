import { Combobox, useCombobox } from '@mantine/core';
import { useState } from 'react';
import { Icon } from '../Icon';
import { Button } from './Button';
import { Listed, type Option } from './Listed';
import css from './Picker.module.css';

interface Props {
  name: string;
  value: string | undefined;
  options: Option[];
  note?: string;
  onPick: (value: string) => void;
}

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
      <Listed
        name={`${name}: what there is`}
        find={find}
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
