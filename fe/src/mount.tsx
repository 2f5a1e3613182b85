import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import type { Client } from './api/client';
import { Page } from './Page';

/** Draws the page into this document. */
export function mount(client: Client): void {
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
