// The entry that TensorBoard imports: it calls render() once, in the plugin's own frame.
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { httpClient } from './api/client';

export async function render(): Promise<void> {
  // Fetched with its styles: drawing before they are there would make the page jump.
  const { Page } = await import('./Page');
  // Not new URL('.', …): the bundler takes that for an asset.
  const client = httpClient(new URL(import.meta.url.replace(/[^/]*$/, '')));
  document.title = 'PyTorch Profiler';
  document.documentElement.lang = 'en';
  const root = document.createElement('div');
  root.id = 'root';
  document.body.append(root);
  createRoot(root).render(
    <StrictMode>
      <Page client={client} />
    </StrictMode>,
  );
}
