// Peaks that a user typed for a device, which this browser stores until they are reset.
import { useEffect } from 'react';
import type { DevicePeaks } from '../../api/types';
import { readSetting, writeSetting } from '../../base/browser/settings';
import { sessionValues } from '../../base/browser/sessionValues';

/** Key of the peaks that the page itself requested. Peaks of a link have none, and aren't stored. */
const TYPED = 'typed peaks';

/**
 * Request the stored peaks of a device if none are given, and store typed ones once the server accepts them.
 *
 * Stored peaks are removed while they are requested: if the server refused them, the page couldn't be opened again.
 *
 * Returns the function to call with typed peaks.
 */
export function useCachedPeaks(
  device: DevicePeaks | undefined,
  given: string,
  request: (peaks: string) => void,
): (peaks: string) => void {
  const setting = `peaks of ${device?.recorded ?? 'a device without a name'}`;
  const accepted = given !== '' && device !== undefined && isEdited(device);
  useEffect(() => {
    if (accepted && given === sessionValues.get(TYPED)) {
      writeSetting(setting, given);
    }
    const stored = readSetting(setting);
    if (given === '' && typeof stored === 'string' && stored !== '') {
      sessionValues.set(TYPED, stored);
      writeSetting(setting, '');
      request(stored);
    }
  }, [accepted, given, setting, request]);
  return peaks => {
    sessionValues.set(TYPED, peaks);
    writeSetting(setting, '');
    request(peaks);
  };
}

/** Whether the figures of a device are those that the page requested. */
const isEdited = (device: DevicePeaks): boolean =>
  device.matched === 'chosen by name' || (device.source?.startsWith('figures given') ?? false);
