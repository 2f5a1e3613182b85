import { createTheme, MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Client } from './api/client';
import { App } from './shell/App';
import { ClientContext } from './state/queries';
import { useTheme } from './state/theme';
import './styles/index.css';

const theme = createTheme({
  fontFamily: 'var(--font)',
  fontFamilyMonospace: 'var(--mono)',
  defaultRadius: 6,
  cursorType: 'pointer',
  respectReducedMotion: true,
});

// The server is often this machine: it answers whatever the browser thinks of the network.
const networkMode = 'always';
const queries = new QueryClient({
  defaultOptions: { queries: { networkMode, refetchOnWindowFocus: false }, mutations: { networkMode } },
});

/** The whole page with what it is drawn by: theme, queries, client. */
export function Page({ client }: { client: Client }) {
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
