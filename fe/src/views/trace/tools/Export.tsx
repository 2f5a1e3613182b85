// Getting the trace out: the file or what is shown of it, as they are or into Perfetto.
import { Popover } from '@mantine/core';
import { useState } from 'react';
import { formatDuration } from '../../../base/format';
import type { Span } from '../../../timeline/tiles/store';
import { Button } from '../../../widgets/inputs/Button';
import { Icon } from '../../../widgets/Icon';
import { openInPerfetto } from './perfetto';
import css from './Export.module.css';

interface Props {
  /** Address of what Perfetto can read of the whole trace: its file, or the same as a chrome trace. */
  readable: string;
  /** Addresses of the whole file and of the part that is shown. */
  whole: string;
  part: string;
  window: Span;
  title: string;
}

export function Export({ readable, part, window, title }: Omit<Props, 'whole'>) {
  const [said, setSaid] = useState<string | null>(null);
  const open = async (address: string) => {
    setSaid('Waiting for ui.perfetto.dev …');
    setSaid(await openInPerfetto(address, title));
  };
  return (
    <Popover position="bottom-end" shadow="md" withinPortal trapFocus returnFocus width={330}>
      <Popover.Target>
        <Button>
          <Icon name="external" size={14} /> <span data-wide>Open in</span> Perfetto
        </Button>
      </Popover.Target>
      <Popover.Dropdown className="menu">
        <p>
          The page is loaded from <strong>ui.perfetto.dev</strong>: this works only with internet. The trace
          is handed to it inside this browser and is not uploaded.
        </p>
        <span className={css.buttons}>
          <Button onClick={() => void open(readable)}>Whole trace</Button>
          <Button onClick={() => void open(part)}>
            Only what is shown, {formatDuration(window.end - window.begin)}
          </Button>
        </span>
        {said !== null && <p aria-live="polite">{said}</p>}
      </Popover.Dropdown>
    </Popover>
  );
}

/** The whole file and the part that is shown, to be kept. */
export const Links = ({ whole, part, window }: Omit<Props, 'title' | 'readable'>) => (
  <>
    <a className="textlink" href={whole} download>
      The original file
    </a>
    <a className="textlink" href={part} download>
      What is shown, {formatDuration(window.end - window.begin)}, as JSON
    </a>
  </>
);
