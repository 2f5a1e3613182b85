// The way into Perfetto's page: it is opened, asked until it answers, and then given the bytes.

const PERFETTO = 'https://ui.perfetto.dev';
const ASK_MS = 100;
const PATIENCE_MS = 30_000;

/** Opens Perfetto with the trace at an address of ours; resolves to what there is to say. */
export async function openInPerfetto(address: string, title: string): Promise<string> {
  const page = window.open(PERFETTO);
  if (!page) {
    return 'This browser blocks the new page. Download the file and open it there instead.';
  }
  const [answered, answer] = await Promise.all([ready(page), fetch(address)]);
  if (!answered) {
    return 'ui.perfetto.dev does not answer. Is there internet here?';
  }
  if (!answer.ok) {
    return `The trace cannot be read (${answer.status}).`;
  }
  const buffer = await answer.arrayBuffer();
  page.postMessage({ perfetto: { buffer, title } }, PERFETTO, [buffer]);
  return 'Opened.';
}

function ready(page: Window): Promise<boolean> {
  return new Promise(resolve => {
    const asking = setInterval(() => page.postMessage('PING', PERFETTO), ASK_MS);
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
    const patience = setTimeout(() => done(false), PATIENCE_MS);
    window.addEventListener('message', onMessage);
  });
}
