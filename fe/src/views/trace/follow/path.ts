// The critical path on the timeline: what it lights, and the walk along it.
import { useMemo, useRef } from 'react';
import type { TracePath } from '../../../api/types';
import { useViewOfEach } from '../../../state/queries';
import type { Lit } from '../../../timeline/contract';
import { mergedId } from '../../../timeline/tiles/merge';
import type { Span } from '../../../timeline/tiles/store';
import { range } from '../answers';
import type { Drawn } from './useSelected';

/** Lights the slices that the path passes through: on its track, in its time; null without a path. */
export function litBy(path: TracePath): Lit | null {
  if (path.event.length === 0) {
    return null;
  }
  const tracks = new Map<number, { begin: number; end: number }[]>();
  path.track.forEach((track, i) => {
    const pieces = tracks.get(track) ?? [];
    tracks.set(track, pieces);
    pieces.push({ begin: path.begin_ns[i]!, end: path.end_ns[i]! });
  });
  for (const pieces of tracks.values()) {
    pieces.sort((a, b) => a.begin - b.begin);
  }
  const events = new Set(path.event);
  return (track, event, start, end) => {
    if (events.has(event)) {
      return true;
    }
    // Pieces of a track follow each other: of those that begin before the end the last one ends last.
    const pieces = tracks.get(track.id) ?? [];
    let [low, high] = [0, pieces.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      [low, high] = pieces[middle]!.begin < end ? [middle + 1, high] : [low, middle];
    }
    return low > 0 && pieces[low - 1]!.end > start;
  };
}

/** The place in the path after (1) or before (-1) that of a slice, in another slice; undefined at its end. */
export function stepFrom(path: TracePath, at: number, by: 1 | -1): number | undefined {
  let next = at;
  do {
    next += by;
  } while (next >= 0 && path.event[next] === path.event[at]);
  return path.event[next] === undefined ? undefined : next;
}

/** Goes along the path; it may pass through a slice several times, so where the walk stands is remembered. */
export function useWalk(
  path: TracePath | undefined,
  event: number | null,
  window: { begin: number; end: number },
  choose: (event: number) => void,
): (by: 1 | -1) => void {
  const stand = useRef<{ event: number; begin: number } | null>(null);
  return (by: 1 | -1) => {
    if (!path) {
      return;
    }
    const known = stand.current?.event === event ? stand.current : null;
    const here = path.event.findIndex(
      (each, i) => each === event && (known === null || path.begin_ns[i] === known.begin),
    );
    const inside = (i: number) => path.begin_ns[i]! < window.end && path.end_ns[i]! > window.begin;
    const places = path.event.map((_, i) => i).filter(inside);
    const next = here >= 0 ? stepFrom(path, here, by) : places.at(by > 0 ? 0 : -1);
    if (next !== undefined) {
      stand.current = { event: path.event[next]!, begin: path.begin_ns[next]! };
      choose(path.event[next]!);
    }
  };
}

export interface Paths {
  /** The path of each trace, in times and numbers of the timeline. */
  each: readonly TracePath[];
  lit: Lit | null;
  more: number;
}

/** The critical path of each trace by itself, in the window and as much on both sides. */
export function usePaths(
  members: readonly Drawn[],
  shown: Span,
  wanted: boolean,
): { paths: Paths | undefined; error: string | null } {
  const around = shown.end - shown.begin;
  const answer = useViewOfEach<TracePath>(
    'trace/path',
    members.map(({ selectors, shift }) => [
      selectors,
      range(shown.begin - around - shift, shown.end + around - shift),
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
  return { each, lit: litBy(all), more: all.more };
}
