// The entry that TensorBoard imports: it calls render() once, in the plugin's own frame.
import { httpClient } from './api/client';
import mono from './styles/fonts/jetbrains-mono.woff2';
import sans from './styles/fonts/inter.woff2';

export async function render(): Promise<void> {
  preloadFonts();
  // Fetched with its styles: drawing before they are there would make the page jump.
  const { mount } = await import('./mount');
  document.title = 'PyTorch Profiler';
  // Not new URL('.', …): the bundler takes that for an asset.
  await mount(httpClient(new URL(import.meta.url.replace(/[^/]*$/, ''))));
}

/** Fetch the fonts beside the code: the page is first drawn when both are there. */
function preloadFonts() {
  for (const href of [sans, mono]) {
    document.head.append(
      Object.assign(document.createElement('link'), {
        rel: 'preload',
        as: 'font',
        type: 'font/woff2',
        crossOrigin: 'anonymous',
        href,
      }),
    );
  }
}
