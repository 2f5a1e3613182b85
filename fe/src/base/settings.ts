// What a user sets once, kept in the browser; where the browser keeps nothing, it lasts until the page goes.

const PREFIX = 'pytorch_profiler.';
const memory = new Map<string, string>();

export function readSetting(name: string): unknown {
  let text: string | null | undefined;
  try {
    text = localStorage.getItem(PREFIX + name);
  } catch {
    text = null; // blocked in this browser
  }
  try {
    return JSON.parse(text ?? memory.get(name) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

export function writeSetting(name: string, value: unknown): void {
  const text = JSON.stringify(value);
  memory.set(name, text);
  try {
    localStorage.setItem(PREFIX + name, text);
  } catch {
    return; // blocked or full: kept in memory
  }
}
