import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import type { Client } from './api/client';
import { Page } from './Page';

const FONTS = ["13px 'Profiler Sans'", "11px 'Profiler Mono'"];
/** So long a page without its fonts is waited for; a canvas that was drawn before then keeps the system's. */
const PATIENCE_MS = 3000;

/** Draws the page into this document, once its fonts are there: a canvas does not draw itself again for them. */
export async function mount(client: Client): Promise<void> {
  await Promise.race([
    Promise.allSettled(FONTS.map(font => document.fonts.load(font))),
    new Promise(resolve => setTimeout(resolve, PATIENCE_MS)),
  ]);
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
