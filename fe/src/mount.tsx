import { createTheme, MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode, useEffect } from 'react';
import { createRoot } from 'react-dom/client';
import type { Client } from './api/client';
import { readState } from './base/browser/host';
import { App } from './shell/App';
import { ClientContext } from './state/queries';
import { toSelection } from './state/selection';
import { useTheme } from './state/theme';
import { VIEWS } from './views';
import './styles/index.css';

const FONTS = ["13px 'Profiler Sans'", "11px 'Profiler Mono'"];
/** Longest wait for the fonts before drawing, ms; a canvas drawn earlier keeps the system's font. */
const FONT_TIMEOUT_MS = 3000;

/** Draw the page into this document once its fonts are loaded, because a canvas isn't redrawn when they arrive. */
export async function mount(client: Client): Promise<void> {
  const { view } = toSelection(readState());
  void VIEWS[view]?.load().catch(() => undefined); // beside the fonts; an error occurs again when the view is drawn
  await Promise.race([
    Promise.allSettled(FONTS.map(font => document.fonts.load(font))),
    new Promise(resolve => setTimeout(resolve, FONT_TIMEOUT_MS)),
  ]);
  document.documentElement.lang = 'en';
  const root = document.createElement('div');
  root.id = 'root';
  document.body.append(root);
  createRoot(root).render(
    <StrictMode>
      <Root client={client} />
    </StrictMode>,
  );
}

const theme = createTheme({
  fontFamily: 'var(--font)',
  fontFamilyMonospace: 'var(--mono)',
  defaultRadius: 6,
  cursorType: 'pointer',
  respectReducedMotion: true,
});

// The server is often this machine, so requests are sent even when the browser believes it is offline.
const networkMode = 'always';
const queries = new QueryClient({
  defaultOptions: { queries: { networkMode, refetchOnWindowFocus: false }, mutations: { networkMode } },
});

/** The page with its theme, queries, and client. */
function Root({ client }: { client: Client }) {
  const { choice, scheme, cycle } = useTheme();
  useEffect(() => {
    document.documentElement.dataset.theme = scheme;
  }, [scheme]);
  return (
    <MantineProvider theme={theme} forceColorScheme={scheme}>
      <QueryClientProvider client={queries}>
        <ClientContext value={client}>
          <App theme={choice} onTheme={cycle} />
        </ClientContext>
      </QueryClientProvider>
    </MantineProvider>
  );
}
