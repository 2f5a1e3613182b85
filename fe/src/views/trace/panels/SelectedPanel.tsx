import type { TraceEvent, TracePayload } from '../../../api/types';
import { plainText } from '../../../base/text';
import { trackName } from '../../../timeline/draw/layout';
import type { SelectedSlice } from '../follow/useSelectedSlice';
import { spanOf, type TimelineState } from '../useTimeline';
import { Details } from './Details';
import { MomentDetails } from './MomentDetails';

interface Props {
  selected: SelectedSlice;
  timeline: TimelineState;
  classes: readonly string[];
  onView: (view: string, params: Record<string, string>) => void;
}

/** All of the selected slice, or of the selected part of a device's time. */
export function SelectedPanel({ selected, timeline, classes, onView }: Props) {
  const { current, flows, module, origin, moment, place, shift, merged } = selected;
  const { change, chooseEvent, chooseMoment, zoomTo } = timeline;
  const shared = {
    time: (ns: number) => timeline.time(ns + shift),
    onEvent: (event: number) => chooseEvent(merged(event)),
    onZoom: () => place && zoomTo(spanOf(place)),
    onClose: () => change({ event: null, moment: null }),
  };
  return (
    <>
      {moment && (
        <MomentDetails
          moment={moment}
          onMoment={next =>
            chooseMoment({
              ...next,
              device: merged(next.device),
              at: next.at + shift,
              until: next.until === null ? null : next.until + shift,
            })
          }
          {...shared}
        />
      )}
      {current && (
        <Details
          event={current}
          flows={flows}
          module={module}
          origin={origin}
          classes={classes}
          onView={onView}
          {...shared}
        />
      )}
    </>
  );
}

export function describeSlice(event: TraceEvent | undefined, payload: TracePayload): string {
  if (!event) {
    return '';
  }
  const track = payload.tracks.find(each => each.id === event.track);
  const where = track ? `, on ${trackName(track, payload)}` : '';
  return `${event.short_name}${where}. ${plainText(event.headline)}`;
}
