// A frame of a recorded stack: opens its file in the editor, or copies its path and line.
import { Popover } from '@mantine/core';
import { useState } from 'react';
import { Button } from './inputs/Button';
import {
  editorLink,
  EDITOR_LINK,
  isEmbedded,
  writeSourceSettings,
  mapPath,
  openInHost,
  readSourceSettings,
} from '../base/browser/source';
import { CopyButton } from './inputs/CopyButton';
import { TextField } from './inputs/TextField';
import { Icon } from './Icon';
import css from './SourceFrame.module.css';

interface Props {
  text: string;
  file?: string | null;
  line?: number | null;
}

export function SourceFrame({ text, file, line }: Props) {
  if (!file || line === null || line === undefined) {
    return <span className={`mono ${css.frame}`}>{text}</span>;
  }
  const settings = readSourceSettings();
  const path = mapPath(file, settings.mapping);
  const link = editorLink(settings.link, path, line);
  return (
    <span className={`mono ${css.frame}`}>
      <span title={`${path}:${line}`}>{text}</span>
      {isEmbedded() ? (
        <Button look="quiet" title={`Open ${path}:${line}`} onClick={() => openInHost(path, line)}>
          <Icon name="external" size={12} />
        </Button>
      ) : (
        link && (
          <a className="button quiet" href={link} title={`Open ${path}:${line} in the editor`}>
            <Icon name="external" size={12} />
          </a>
        )
      )}
      <CopyButton label={`Copy ${path}:${line}`} text={() => `${path}:${line}`} />
    </span>
  );
}

/** The menu that sets the editor and maps recorded paths to paths on this machine. */
export function SourceSettingsMenu() {
  const [settings, setSettings] = useState(readSourceSettings);
  const change = (next: typeof settings) => {
    setSettings(next);
    writeSourceSettings(next);
  };
  const rows = [...settings.mapping, { from: '', to: '' }];
  return (
    <Popover position="bottom-end" shadow="md" withinPortal trapFocus returnFocus width={380}>
      <Popover.Target>
        <Button look="quiet" title="Where source files are and what opens them">
          <Icon name="external" size={14} /> <span data-wide>Sources</span>
        </Button>
      </Popover.Target>
      <Popover.Dropdown className={css.menu}>
        <TextField
          mono
          label="Editor link"
          value={settings.link}
          placeholder={EDITOR_LINK}
          onChange={link => change({ ...settings, link })}
        />
        <p className="dim">{'{path} and {line} are filled in. Leave it empty to copy paths instead.'}</p>
        <p>Recorded on another machine? Map its folders to folders on this one:</p>
        {rows.map((row, i) => (
          // oxlint-disable-next-line react/no-array-index-key -- rows are identified by their position
          <span key={i} className={css.row}>
            <TextField
              mono
              name="Recorded path prefix"
              value={row.from}
              placeholder="/recorded/path/"
              onChange={from => change({ ...settings, mapping: editMapping(rows, i, { from }) })}
            />
            →
            <TextField
              mono
              name="Path prefix on this machine"
              value={row.to}
              placeholder="/path/here/"
              onChange={to => change({ ...settings, mapping: editMapping(rows, i, { to }) })}
            />
          </span>
        ))}
      </Popover.Dropdown>
    </Popover>
  );
}

interface Mapping {
  from: string;
  to: string;
}

/** Return the mapping with row `index` changed and without empty rows. */
const editMapping = (rows: Mapping[], index: number, change: Partial<Mapping>): Mapping[] =>
  rows
    .map((row, i) => (i === index ? { ...row, ...change } : row))
    .filter(row => row.from !== '' || row.to !== '');
