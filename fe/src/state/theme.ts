import { useCallback, useEffect, useState } from 'react';
import { hostIsDark, onHostTheme } from '../base/browser/host';
import { storedText, storeText } from '../base/browser/settings';

export type ThemeChoice = 'host' | 'light' | 'dark';

const NEXT: Record<ThemeChoice, ThemeChoice> = { host: 'light', light: 'dark', dark: 'host' };

function storedChoice(): ThemeChoice {
  const choice = storedText('theme');
  return choice === 'light' || choice === 'dark' ? choice : 'host';
}

/** Return the color scheme: that of TensorBoard unless the user chose one. */
export function useTheme() {
  const [choice, setChoice] = useState(storedChoice);
  const [hostDark, setHostDark] = useState(hostIsDark);
  useEffect(() => onHostTheme(() => setHostDark(hostIsDark())), []);
  const cycle = useCallback(() => {
    setChoice(now => {
      storeText('theme', NEXT[now]);
      return NEXT[now];
    });
  }, []);
  const scheme: 'light' | 'dark' = (choice === 'host' ? hostDark : choice === 'dark') ? 'dark' : 'light';
  return { choice, scheme, cycle };
}
