// What a user sets once, as JSON; where the browser keeps nothing, it lasts until the page goes.
import { recall, remember } from './host';

const session = new Map<string, string>();

export function readSetting(name: string): unknown {
  try {
    return JSON.parse(recall(name) ?? session.get(name) ?? 'null') ?? undefined;
  } catch {
    return undefined; // written by something else
  }
}

export function writeSetting(name: string, value: unknown): void {
  const text = JSON.stringify(value);
  session.set(name, text);
  remember(name, text);
}
