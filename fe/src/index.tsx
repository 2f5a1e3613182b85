// The entry that TensorBoard imports: it calls render() once, in the plugin's own frame.
import { httpClient } from './api/client';

export async function render(): Promise<void> {
  // Fetched with its styles: drawing before they are there would make the page jump.
  const { mount } = await import('./mount');
  document.title = 'PyTorch Profiler';
  // Not new URL('.', …): the bundler takes that for an asset.
  await mount(httpClient(new URL(import.meta.url.replace(/[^/]*$/, ''))));
}
