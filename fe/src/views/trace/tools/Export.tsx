// Export of the trace: open it in Perfetto, or download the file or its visible part.
import { Popover } from '@mantine/core';
import { useState } from 'react';
import { formatDuration } from '../../../base/format';
import type { Span } from '../../../timeline/tiles/store';
import { Button } from '../../../widgets/inputs/Button';
import { Icon } from '../../../widgets/Icon';
import css from './Export.module.css';

const PERFETTO = 'https://ui.perfetto.dev';
/** Time between two pings until Perfetto answers, and after which it is given up, ms. */
const PING_MS = 100;
const TIMEOUT_MS = 30_000;

interface Props {
  /** Address of the whole trace in a format that Perfetto reads: its file, or a Chrome trace of it. */
  readable: string;
  /** Addresses of the original file and of its visible part. */
  original: string;
  part: string;
  window: Span;
  title: string;
}

export function Export({ readable, part, window, title }: Omit<Props, 'original'>) {
  const [message, setMessage] = useState<string | null>(null);
  const open = async (address: string) => {
    setMessage('Waiting for ui.perfetto.dev…');
    setMessage(await openInPerfetto(address, title));
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
          Opens <strong>ui.perfetto.dev</strong>, so it needs internet access. The trace is handed to that
          page inside your browser; it isn’t uploaded.
        </p>
        <span className={css.buttons}>
          <Button onClick={() => void open(readable)}>Entire trace</Button>
          <Button onClick={() => void open(part)}>
            Visible time range, {formatDuration(window.end - window.begin)}
          </Button>
        </span>
        {message !== null && <p aria-live="polite">{message}</p>}
      </Popover.Dropdown>
    </Popover>
  );
}

/** Links that download the original file and its visible part. */
export const Links = ({ original, part, window }: Omit<Props, 'title' | 'readable'>) => (
  <>
    <a className="textlink" href={original} download>
      The original file
    </a>
    <a className="textlink" href={part} download>
      Visible time range, {formatDuration(window.end - window.begin)}, as JSON
    </a>
  </>
);

/** Open Perfetto with the trace at `address`; resolve to a message for the user. */
async function openInPerfetto(address: string, title: string): Promise<string> {
  const page = window.open(PERFETTO);
  if (!page) {
    return 'The browser blocked the new tab. Download the file and open it in Perfetto instead.';
  }
  const [answered, answer] = await Promise.all([waitUntilReady(page), fetch(address).catch(() => null)]);
  if (!answered) {
    return 'ui.perfetto.dev is not responding. Check your internet connection.';
  }
  if (!answer) {
    return 'TensorBoard is not responding.';
  }
  if (!answer.ok) {
    return `The trace can't be read (${answer.status}).`;
  }
  const buffer = await answer.arrayBuffer();
  page.postMessage({ perfetto: { buffer, title } }, PERFETTO, [buffer]);
  return 'Opened.';
}

function waitUntilReady(page: Window): Promise<boolean> {
  return new Promise(resolve => {
    const pings = setInterval(() => page.postMessage('PING', PERFETTO), PING_MS);
    const done = (answered: boolean) => {
      clearInterval(pings);
      clearTimeout(timeout);
      window.removeEventListener('message', onMessage);
      resolve(answered);
    };
    const onMessage = (event: MessageEvent) => {
      if (event.origin === PERFETTO && event.data === 'PONG') {
        done(true);
      }
    };
    const timeout = setTimeout(() => done(false), TIMEOUT_MS);
    window.addEventListener('message', onMessage);
  });
}
