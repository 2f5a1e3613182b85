// What the colors of slices mean.
import type { TraceColors, TracePayload } from '../../../api/types';
import { CATEGORY_TITLE, type Category } from '../../../base/category';
import { familyColor } from '../../../base/family';
import { classColor, distinctColor, type ColorBy } from '../../../timeline/draw/colors';

export interface Meaning {
  code: number;
  text: string;
  /** As CSS has it. */
  color: string;
}

const CLASS_TITLE: Record<string, string> = {
  ...CATEGORY_TITLE,
  annotation: 'Annotation',
  python: 'Python',
  sync: 'Synchronization',
};

const DEVICE_CLASSES: readonly string[] = ['kernel', 'memcpy', 'memset', 'runtime', 'sync'];

/** None of names: there are more of them than colors. */
export function meanings(by: ColorBy, payload: TracePayload, colors: TraceColors | undefined): Meaning[] {
  if (by === 'name') {
    return [];
  }
  const texts = by === 'class' ? payload.classes : (colors?.texts ?? []);
  const device = payload.groups.some(group => group.kind === 'device');
  return (
    texts
      .map((text, code) => ({
        code,
        text: by === 'class' ? (CLASS_TITLE[text as Category] ?? text) : text,
        color:
          by === 'class' ? classColor(text) : by === 'family' ? familyColor(text) : distinctColor(code - 1),
      }))
      .filter(entry => entry.text !== '')
      // Without a device the colors of its work would only explain what is not there.
      .filter(entry => by !== 'class' || device || !DEVICE_CLASSES.includes(texts[entry.code]!))
  );
}
