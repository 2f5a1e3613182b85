// A frame of a stack: opens its file in the editor, or copies where it is.
import { Popover } from '@mantine/core';
import { useState } from 'react';
import { Button } from './inputs/Button';
import {
  editorLink,
  EDITOR_LINK,
  isEmbedded,
  keepSourceSettings,
  mapPath,
  openInHost,
  sourceSettings,
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
  const settings = sourceSettings();
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

/** Which editor opens files, and where the recorded paths lie on this machine. */
export function SourceSettingsMenu() {
  const [settings, setSettings] = useState(sourceSettings);
  const change = (next: typeof settings) => {
    setSettings(next);
    keepSourceSettings(next);
  };
  const rows = [...settings.mapping, { from: '', to: '' }];
  return (
    <Popover position="bottom-end" shadow="md" withinPortal trapFocus returnFocus width={380}>
      <Popover.Target>
        <Button look="quiet" title="Where the sources are">
          <Icon name="external" size={14} /> <span data-wide>Sources</span>
        </Button>
      </Popover.Target>
      <Popover.Dropdown className={css.menu}>
        <TextField
          mono
          label="Link to the editor"
          value={settings.link}
          placeholder={EDITOR_LINK}
          onChange={link => change({ ...settings, link })}
        />
        <p className="dim">{'{path} and {line} are filled in; leave it empty to only copy.'}</p>
        <p>Recorded on another machine? Say where its folders are here:</p>
        {rows.map((row, i) => (
          // oxlint-disable-next-line react/no-array-index-key -- rows are told apart by their place
          <span key={i} className={css.row}>
            <TextField
              mono
              name="Recorded prefix"
              value={row.from}
              placeholder="/recorded/prefix/"
              onChange={from => change({ ...settings, mapping: edited(rows, i, { from }) })}
            />
            →
            <TextField
              mono
              name="Prefix on this machine"
              value={row.to}
              placeholder="/prefix/here/"
              onChange={to => change({ ...settings, mapping: edited(rows, i, { to }) })}
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

const edited = (rows: Mapping[], at: number, change: Partial<Mapping>): Mapping[] =>
  rows
    .map((row, i) => (i === at ? { ...row, ...change } : row))
    .filter(row => row.from !== '' || row.to !== '');
