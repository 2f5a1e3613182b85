// The entry that TensorBoard imports: it calls render() once, in the plugin's own frame.
import { createTheme, MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode, useEffect } from 'react';
import { createRoot } from 'react-dom/client';
import { httpClient } from './api/client';
import { App } from './shell/App';
import { ClientContext } from './state/queries';
import { useTheme } from './state/theme';
import styles from './styles.css?url';

const theme = createTheme({
  fontFamily: 'var(--font)',
  fontFamilyMonospace: 'var(--mono)',
  defaultRadius: 6,
  cursorType: 'pointer',
  respectReducedMotion: true,
});

const queries = new QueryClient({ defaultOptions: { queries: { refetchOnWindowFocus: false } } });
const client = httpClient(new URL(import.meta.url.replace(/[^/]*$/, '')));

function Root() {
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

export async function render(): Promise<void> {
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = new URL(styles, import.meta.url).href;
  // Drawing before the styles are there would make the page jump.
  await new Promise<void>(done => {
    link.addEventListener('load', () => done());
    link.addEventListener('error', () => done());
    document.head.append(link);
  });
  document.title = 'PyTorch Profiler';
  document.documentElement.lang = 'en';
  const root = document.createElement('div');
  root.id = 'root';
  document.body.append(root);
  createRoot(root).render(
    <StrictMode>
      <Root />
    </StrictMode>,
  );
}
