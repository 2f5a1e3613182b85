// The critical path on the timeline: which slices it highlights, and stepping along it.
import { useMemo, useRef } from 'react';
import type { TracePath } from '../../../api/types';
import { useViewOfEach } from '../../../state/queries';
import type { Highlight } from '../../../timeline/contract';
import { mergedId } from '../../../timeline/tiles/merge';
import type { Span } from '../../../timeline/tiles/store';
import { rangeParams } from '../answers';
import type { TimelineTrace } from './useSelectedSlice';

/** Highlight the slices that the path passes through, by track and time; null without a path. */
export function highlightPath(path: TracePath): Highlight | null {
  if (path.event.length === 0) {
    return null;
  }
  const tracks = new Map<number, { begin: number; end: number }[]>();
  path.track.forEach((track, i) => {
    const segments = tracks.get(track) ?? [];
    tracks.set(track, segments);
    segments.push({ begin: path.begin_ns[i]!, end: path.end_ns[i]! });
  });
  for (const segments of tracks.values()) {
    segments.sort((a, b) => a.begin - b.begin);
  }
  const events = new Set(path.event);
  return (track, event, start, end) => {
    if (events.has(event)) {
      return true;
    }
    // Segments of a track don't overlap: of those that begin before `end`, the last one ends last.
    const segments = tracks.get(track.id) ?? [];
    let [low, high] = [0, segments.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      [low, high] = segments[middle]!.begin < end ? [middle + 1, high] : [low, middle];
    }
    return low > 0 && segments[low - 1]!.end > start;
  };
}

/** Return the next (1) or previous (-1) index in the path that is in another slice; undefined at its end. */
export function nextOnPath(path: TracePath, at: number, by: 1 | -1): number | undefined {
  let next = at;
  do {
    next += by;
  } while (next >= 0 && path.event[next] === path.event[at]);
  return path.event[next] === undefined ? undefined : next;
}

/** Return a function that steps along the path; it remembers the segment, as a slice may have several. */
export function usePathWalk(
  path: TracePath | undefined,
  event: number | null,
  window: { begin: number; end: number },
  choose: (event: number) => void,
): (by: 1 | -1) => void {
  const position = useRef<{ event: number; begin: number } | null>(null);
  return (by: 1 | -1) => {
    if (!path) {
      return;
    }
    const known = position.current?.event === event ? position.current : null;
    const here = path.event.findIndex(
      (each, i) => each === event && (known === null || path.begin_ns[i] === known.begin),
    );
    const inside = (i: number) => path.begin_ns[i]! < window.end && path.end_ns[i]! > window.begin;
    const places = path.event.map((_, i) => i).filter(inside);
    const next = here >= 0 ? nextOnPath(path, here, by) : places.at(by > 0 ? 0 : -1);
    if (next !== undefined) {
      position.current = { event: path.event[next]!, begin: path.begin_ns[next]! };
      choose(path.event[next]!);
    }
  };
}

export interface Paths {
  /** The path of each trace, in times and ids of the timeline. */
  byTrace: readonly TracePath[];
  highlight: Highlight | null;
  more: number;
}

/** Fetch the critical path of each trace, in the window and as much on both sides. */
export function usePaths(
  members: readonly TimelineTrace[],
  shown: Span,
  wanted: boolean,
): { paths: Paths | undefined; error: string | null } {
  const around = shown.end - shown.begin;
  const answer = useViewOfEach<TracePath>(
    'trace/path',
    members.map(({ selectors, shift }) => [
      selectors,
      rangeParams(shown.begin - around - shift, shown.end + around - shift),
    ]),
    wanted,
  );
  const { payloads } = answer;
  const paths = useMemo(
    () => (wanted && payloads ? mergePaths(payloads, members) : undefined),
    [wanted, payloads, members],
  );
  return { paths, error: (wanted && answer.error?.message) || null };
}

export function mergePaths(paths: readonly TracePath[], members: readonly { shift: number }[]): Paths {
  const count = members.length;
  const each = paths.map((path, index): TracePath => {
    const { shift } = members[index]!;
    return {
      event: path.event.map(id => mergedId(id, index, count)),
      track: path.track.map(id => mergedId(id, index, count)),
      begin_ns: path.begin_ns.map(time => time + shift),
      end_ns: path.end_ns.map(time => time + shift),
      more: path.more,
    };
  });
  const all: TracePath = {
    event: each.flatMap(path => path.event),
    track: each.flatMap(path => path.track),
    begin_ns: each.flatMap(path => path.begin_ns),
    end_ns: each.flatMap(path => path.end_ns),
    more: each.reduce((sum, path) => sum + path.more, 0),
  };
  return { byTrace: each, highlight: highlightPath(all), more: all.more };
}
