// Open a trace in Perfetto: open its page, ping it until it responds, then post the bytes.

const PERFETTO = 'https://ui.perfetto.dev';
/** Time between two pings until Perfetto answers, and after which it is given up, ms. */
const PING_MS = 100;
const TIMEOUT_MS = 30_000;

/** Open Perfetto with the trace at `address`; resolve to a message for the user. */
export async function openInPerfetto(address: string, title: string): Promise<string> {
  const page = window.open(PERFETTO);
  if (!page) {
    return 'The browser blocked the new tab. Download the file and open it in Perfetto instead.';
  }
  const [answered, answer] = await Promise.all([ready(page), fetch(address).catch(() => null)]);
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

function ready(page: Window): Promise<boolean> {
  return new Promise(resolve => {
    const asking = setInterval(() => page.postMessage('PING', PERFETTO), PING_MS);
    const done = (answered: boolean) => {
      clearInterval(asking);
      clearTimeout(patience);
      window.removeEventListener('message', onMessage);
      resolve(answered);
    };
    const onMessage = (event: MessageEvent) => {
      if (event.origin === PERFETTO && event.data === 'PONG') {
        done(true);
      }
    };
    const patience = setTimeout(() => done(false), TIMEOUT_MS);
    window.addEventListener('message', onMessage);
  });
}
