// What a screen reader says of a slice.
import type { TraceEvent, TracePayload } from '../../../api/types';
import { nameOf } from '../../../timeline/draw/layout';
import { plainText } from '../../../base/text';

export function spokenSlice(event: TraceEvent | undefined, payload: TracePayload): string {
  if (!event) {
    return '';
  }
  const track = payload.tracks.find(each => each.id === event.track);
  const where = track ? `, on ${nameOf(track, payload)}` : '';
  return `${event.short_name}${where}. ${plainText(event.headline)}`;
}
