// Settings that outlive the page, where the browser allows it.
import { PLUGIN } from './host';
import { sessionValues } from './sessionValues';

export function storeText(key: string, text: string): void {
  try {
    localStorage.setItem(`${PLUGIN}.${key}`, text);
  } catch {
    // A sandboxed frame has no storage; the setting then lasts as long as the page.
  }
}

export function storedText(key: string): string | null {
  try {
    return localStorage.getItem(`${PLUGIN}.${key}`);
  } catch {
    return null;
  }
}

/** Browsers without storage remember a setting until the page is closed. */
const keyOf = (name: string): string => `setting\n${name}`;

export function readSetting(name: string): unknown {
  try {
    return (
      JSON.parse(storedText(name) ?? (sessionValues.get(keyOf(name)) as string | undefined) ?? 'null') ??
      undefined
    );
  } catch {
    return undefined; // written by something else
  }
}

export function writeSetting(name: string, value: unknown): void {
  const text = JSON.stringify(value);
  sessionValues.set(keyOf(name), text);
  storeText(name, text);
}
