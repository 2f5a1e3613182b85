// The page that hosts ours: TensorBoard, in the same origin. In other places (VS Code's sandbox) reaching it
// throws, and the page then keeps its state to itself.

export const PLUGIN = 'pytorch_profiler';

function parentWindow(): Window | null {
  try {
    return window.parent !== window && window.parent.location.href ? window.parent : null;
  } catch {
    return null;
  }
}

const host = parentWindow();

/** State in the address: `#pytorch_profiler&p.pytorch_profiler.view=overview&p.pytorch_profiler.run=a%20b`. */
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

const owner = (): Window => host ?? window;

export const readState = (): Record<string, string> => parseHash(owner().location.hash);

/** Put the state into the address; `push` makes a step for the back button. */
export function writeState(state: Record<string, string>, push: boolean): void {
  const { history, location } = owner();
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
  const tab = owner().location.hash.replace(/^#/, '').split('&')[0];
  return tab === PLUGIN || tab === '';
}

export function onStateChange(listener: () => void): () => void {
  const changed = () => {
    if (!host || isActiveTab()) {
      listener();
    }
  };
  owner().addEventListener('popstate', changed);
  owner().addEventListener('hashchange', changed);
  return () => {
    owner().removeEventListener('popstate', changed);
    owner().removeEventListener('hashchange', changed);
  };
}

export const shareLink = (): string => owner().location.href;

/** Whether the host is dark now. TensorBoard marks its body; elsewhere the system's preference counts. */
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
 * The page has the keys from the start: it takes the focus when it opens, and later the letters that are pressed while
 * the host has it, unless text is typed there.
 */
export function takeKeys(focus: () => void): () => void {
  if (!host) {
    focus();
    return () => undefined;
  }
  const { document: outer } = host;
  if (isActiveTab() && !outer.activeElement?.matches(TYPED)) {
    focus();
  }
  const onKey = (event: KeyboardEvent) => {
    const target = event.composedPath()[0] as Partial<Element>;
    const letter = event.key.length === 1 && event.key !== ' ';
    if (letter && isActiveTab() && !target.matches?.(TYPED)) {
      focus();
      document.activeElement?.dispatchEvent(new KeyboardEvent(event.type, event));
    }
  };
  outer.addEventListener('keydown', onKey);
  return () => outer.removeEventListener('keydown', onKey);
}

/** What takes text; of the host's elements only their selectors tell. */
const TYPED = 'input, textarea, select, [contenteditable]';

/** A small setting kept across visits, where the browser allows it. */
export function remember(key: string, value: string): void {
  try {
    localStorage.setItem(`${PLUGIN}.${key}`, value);
  } catch {
    // A sandboxed frame has no storage; the setting then lasts as long as the page.
  }
}

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(`${PLUGIN}.${key}`);
  } catch {
    return null;
  }
}
