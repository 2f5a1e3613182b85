import type { Selected } from '../follow/useSelected';
import { spanOf, type Timeline } from '../useTimeline';
import { Details } from './Details';
import { Waiting } from './Waiting';

interface Props {
  selected: Selected;
  timeline: Timeline;
  classes: readonly string[];
  onView: (view: string, params: Record<string, string>) => void;
}

/** All of the selected slice, or of the selected part of a device's time. */
export function SelectedPanel({ selected, timeline, classes, onView }: Props) {
  const { current, flows, module, moment, place, shift, merged } = selected;
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
        <Waiting
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
          classes={classes}
          onView={onView}
          {...shared}
        />
      )}
    </>
  );
}
