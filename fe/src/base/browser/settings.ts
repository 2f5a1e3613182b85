// Settings that survive a visit, where the browser allows it.
import { PLUGIN } from './host';

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

/** Settings of this visit as JSON, for browsers without storage. */
const session = new Map<string, string>();

export function readSetting(name: string): unknown {
  try {
    return JSON.parse(storedText(name) ?? session.get(name) ?? 'null') ?? undefined;
  } catch {
    return undefined; // written by something else
  }
}

export function writeSetting(name: string, value: unknown): void {
  const text = JSON.stringify(value);
  session.set(name, text);
  storeText(name, text);
}
