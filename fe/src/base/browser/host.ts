// The page around ours: TensorBoard, from the same origin. Elsewhere (VS Code's sandbox) accessing it throws, and
// this page then has its own address, theme, and keys.

export const PLUGIN = 'pytorch_profiler';

function parentWindow(): Window | null {
  try {
    return window.parent !== window && window.parent.location.href ? window.parent : null;
  } catch {
    return null;
  }
}

/** TensorBoard's window, or null where this page can't access it. */
const host = parentWindow();

/** Return the state in an address like `#pytorch_profiler&p.pytorch_profiler.view=overview&p.pytorch_profiler.run=a%20b`. */
export function parseHash(hash: string): Record<string, string> {
  const prefix = `p.${PLUGIN}.`;
  const state: Record<string, string> = {};
  for (const part of hash.replace(/^#/, '').split('&')) {
    const equals = part.indexOf('=');
    if (equals > 0 && part.startsWith(prefix)) {
      const key = decode(part.slice(prefix.length, equals));
      const value = decode(part.slice(equals + 1));
      if (key !== null && value !== null) {
        state[key] = value;
      }
    }
  }
  return state;
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

export function formatHash(state: Record<string, string>): string {
  const parts = Object.entries(state).map(
    ([key, value]) => `p.${PLUGIN}.${encodeURIComponent(key)}=${encodeURIComponent(value)}`,
  );
  return `#${[PLUGIN, ...parts].join('&')}`;
}

/** Return the window whose address holds the state. */
const addressWindow = (): Window => host ?? window;

export const readState = (): Record<string, string> => parseHash(addressWindow().location.hash);

/** Write the state into the address; with `push`, the back button returns to the state before. */
export function writeState(state: Record<string, string>, push: boolean): void {
  const { history, location } = addressWindow();
  if (host && !isActiveTab()) {
    return;
  }
  const url = `${location.pathname}${location.search}${formatHash(state)}`;
  if (push) {
    history.pushState(history.state, '', url);
  } else {
    history.replaceState(history.state, '', url);
  }
}

function isActiveTab(): boolean {
  const tab = addressWindow().location.hash.replace(/^#/, '').split('&')[0];
  return tab === PLUGIN || tab === '';
}

export function onStateChange(listener: () => void): () => void {
  const changed = () => {
    if (!host || isActiveTab()) {
      listener();
    }
  };
  addressWindow().addEventListener('popstate', changed);
  addressWindow().addEventListener('hashchange', changed);
  return () => {
    addressWindow().removeEventListener('popstate', changed);
    addressWindow().removeEventListener('hashchange', changed);
  };
}

export const shareLink = (): string => addressWindow().location.href;

/** Return whether the host is dark: TensorBoard marks its body; elsewhere the system's preference counts. */
export function hostIsDark(): boolean {
  if (host) {
    return host.document.body.classList.contains('dark-mode');
  }
  return window.matchMedia('(prefers-color-scheme: dark)').matches;
}

export function onHostTheme(listener: () => void): () => void {
  if (host) {
    const observer = new MutationObserver(listener);
    observer.observe(host.document.body, { attributes: true, attributeFilter: ['class'] });
    return () => observer.disconnect();
  }
  const query = window.matchMedia('(prefers-color-scheme: dark)');
  query.addEventListener('change', listener);
  return () => query.removeEventListener('change', listener);
}

/**
 * Make shortcuts work without a click into the page: `focus` it when it opens, and forward letters that are pressed
 * while the host has the focus, unless they are typed into a field there. Return the function that ends this.
 */
export function captureKeys(focus: () => void): () => void {
  if (!host) {
    focus();
    return () => undefined;
  }
  const { document: outer } = host;
  if (isActiveTab() && !outer.activeElement?.matches(TEXT_FIELDS)) {
    focus();
  }
  const onKey = (event: KeyboardEvent) => {
    const target = event.composedPath()[0] as Partial<Element>;
    const letter = event.key.length === 1 && event.key !== ' ';
    if (letter && isActiveTab() && !target.matches?.(TEXT_FIELDS)) {
      focus();
      document.activeElement?.dispatchEvent(new KeyboardEvent(event.type, event));
    }
  };
  outer.addEventListener('keydown', onKey);
  return () => outer.removeEventListener('keydown', onKey);
}

/** A selector, because elements of the host are instances of its own classes. */
const TEXT_FIELDS = 'input, textarea, select, [contenteditable]';

/** Return whether an element of this page takes text, so that keys pressed in it are no shortcuts. */
export const takesText = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches('input:not([type=radio], [type=checkbox]), textarea');
