// Peaks that were typed for a device, kept by this browser until they are reset.
import { useEffect } from 'react';
import type { DevicePeaks } from '../../api/types';
import { readSetting, writeSetting } from '../../base/browser/settings';
import { visit } from '../../base/browser/visit';

/** The key of the peaks that were asked for here, not by a link; they are kept once the server has taken them. */
const TYPED = 'typed peaks';

/**
 * Uses what is kept for the device of a page that asks for no peaks; returns what to call with typed ones.
 *
 * What is kept is forgotten while it is asked for: what the server refuses would else bar the way to the page.
 */
export function useCachedPeaks(
  device: DevicePeaks | undefined,
  given: string,
  ask: (peaks: string) => void,
): (peaks: string) => void {
  const setting = `peaks of ${device?.recorded ?? 'a device without a name'}`;
  const taken = given !== '' && device !== undefined && isEdited(device);
  useEffect(() => {
    if (taken && given === visit.get(TYPED)) {
      writeSetting(setting, given);
    }
    const kept = readSetting(setting);
    if (given === '' && typeof kept === 'string' && kept !== '') {
      visit.set(TYPED, kept);
      writeSetting(setting, '');
      ask(kept);
    }
  }, [taken, given, setting, ask]);
  return peaks => {
    visit.set(TYPED, peaks);
    writeSetting(setting, '');
    ask(peaks);
  };
}

/** Whether the figures that an answer rests on are those that were asked for. */
const isEdited = (device: DevicePeaks): boolean =>
  device.matched === 'chosen by name' || (device.source?.startsWith('figures given') ?? false);
