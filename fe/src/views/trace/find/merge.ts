// What a search finds in each of the traces of a timeline, as one answer on its clock. No React.
import type { Selectors, TraceHits, TraceRef, TraceSearch } from '../../../api/types';
import type { Lit } from '../../../timeline/contract';
import { memberOf, mergedId } from '../../../timeline/tiles/merge';

/** A trace on the timeline: what it is asked by, and what leads from its time to the clock, ns. */
export interface Searched {
  selectors: Selectors;
  shift: number;
}

/** Where the reader is: a hit (or -1) at a time of the clock, and the track whose hits are listed (-1: all). */
export interface Stand {
  at: number;
  event: number;
  track: number;
}

/** From where each trace looks for the hits before and after: of hits at one time, those of the first trace come first. */
export function standIn({ at, event, track }: Stand, index: number, traces: readonly Searched[]) {
  const count = traces.length;
  const here = event < 0 ? null : memberOf(event, count);
  const time = Math.round(at) - traces[index]!.shift;
  const listed = track >= 0 && memberOf(track, count).index === index;
  return {
    at: here && index < here.index ? time + 1 : time,
    event: here?.index === index ? here.id : -1,
    track: listed ? memberOf(track, count).id : -1,
  };
}

export type Found = Pick<TraceSearch, 'headline' | 'hits' | 'by_track' | 'rows' | 'previous' | 'next'>;

export function mergeFound(
  answers: readonly TraceSearch[],
  traces: readonly Searched[],
  { track }: Stand,
  listed: number,
): Found {
  const count = traces.length;
  const placed = (ref: TraceRef, index: number): TraceRef => ({
    ...ref,
    event: mergedId(ref.event, index, count),
    track: mergedId(ref.track, index, count),
    start_ns: ref.start_ns === null ? null : ref.start_ns + traces[index]!.shift,
  });
  const inOrder = (refs: readonly (TraceRef | null)[][]): TraceRef[] =>
    refs
      .flatMap((each, index) => each.flatMap(ref => (ref ? [placed(ref, index)] : [])))
      .sort((a, b) => (a.start_ns ?? 0) - (b.start_ns ?? 0));
  const rows = inOrder(answers.map(answer => answer.rows));
  return {
    headline: answers[0]!.headline,
    hits: answers.reduce((sum, answer) => sum + answer.hits, 0),
    by_track: answers.flatMap((answer, index) =>
      answer.by_track.map(each => ({ ...each, track: mergedId(each.track, index, count) })),
    ),
    rows: rows.filter(row => track < 0 || row.track === track).slice(0, listed),
    previous: inOrder(answers.map(answer => [answer.previous])).at(-1) ?? null,
    next: inOrder(answers.map(answer => [answer.next]))[0] ?? null,
  };
}

/** Hits of a lane with no gap to be seen. */
export interface Place {
  track: number;
  depth: number;
  begin: number;
  end: number;
}

export const placesOf = (answers: readonly TraceHits[], traces: readonly Searched[]): Place[] =>
  answers.flatMap((hits, index) =>
    hits.track.map((track, i) => ({
      track: mergedId(track, index, traces.length),
      depth: hits.depth[i]!,
      begin: hits.begin_ns[i]! + traces[index]!.shift,
      end: hits.end_ns[i]! + traces[index]!.shift,
    })),
  );

/** Lights what lies where hits are, in their own lanes alone; `places` are ordered by time in each lane. */
export function litBy(places: readonly Place[]): Lit {
  const lanes = new Map<string, Place[]>();
  for (const place of places) {
    const key = `${place.track} ${place.depth}`;
    const lane = lanes.get(key) ?? [];
    lanes.set(key, lane);
    lane.push(place);
  }
  return (track, _, start, end, depth) => {
    const lane = lanes.get(`${track.id} ${depth}`) ?? [];
    // A slice shorter than what times are rounded to ends before it starts.
    const [from, to] = [Math.min(start, end), Math.max(start, end)];
    let [low, high] = [0, lane.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      [low, high] = lane[middle]!.begin <= to ? [middle + 1, high] : [low, middle];
    }
    return low > 0 && lane[low - 1]!.end >= from;
  };
}
