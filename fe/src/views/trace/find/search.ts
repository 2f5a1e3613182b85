// Search on a timeline: one query to each trace, and their matches merged on the timeline's clock.
import { useMemo, useState } from 'react';
import type { Selectors, TraceHits, TracePayload, TraceRef, TraceSearch } from '../../../api/types';
import { useViewOfEach } from '../../../state/queries';
import type { Highlight } from '../../../timeline/contract';
import { memberOf, mergedId } from '../../../timeline/tiles/merge';
import type { Span } from '../../../timeline/tiles/store';
import { MAP_BUCKETS, rangeParams } from '../answers';
import type { TraceState } from '../state';

/** A searched trace; `shift` (ns) is added to its times. */
export interface SearchedTrace {
  selectors: Selectors;
  shift: number;
}

/** Where the search continues: at a time and a hit (-1: none); `track` limits the listed hits (-1: all). */
interface SearchPosition {
  at: number;
  event: number;
  track: number;
}

/** Return the position in the trace `index`. Of hits at the same time, those of earlier traces come first. */
export function positionInTrace(
  { at, event, track }: SearchPosition,
  index: number,
  traces: readonly SearchedTrace[],
) {
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

type SearchMatches = Pick<TraceSearch, 'headline' | 'hits' | 'by_track' | 'rows' | 'previous' | 'next'>;

export function mergeMatches(
  answers: readonly TraceSearch[],
  traces: readonly SearchedTrace[],
  { track }: SearchPosition,
  listed: number,
): SearchMatches {
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

/** Hits of one lane without a visible gap. */
interface HitRange {
  track: number;
  depth: number;
  begin: number;
  end: number;
}

export const hitRanges = (answers: readonly TraceHits[], traces: readonly SearchedTrace[]): HitRange[] =>
  answers.flatMap((hits, index) =>
    hits.track.map((track, i) => ({
      track: mergedId(track, index, traces.length),
      depth: hits.depth[i]!,
      begin: hits.begin_ns[i]! + traces[index]!.shift,
      end: hits.end_ns[i]! + traces[index]!.shift,
    })),
  );

/** Highlight the slices where hits are, in the hits' lanes; `ranges` are ordered by time in each lane. */
export function highlightHits(ranges: readonly HitRange[]): Highlight {
  const lanes = new Map<string, HitRange[]>();
  for (const range of ranges) {
    const key = `${range.track} ${range.depth}`;
    const lane = lanes.get(key) ?? [];
    lanes.set(key, lane);
    lane.push(range);
  }
  return (track, _, start, end, depth) => {
    const lane = lanes.get(`${track.id} ${depth}`) ?? [];
    // A slice shorter than the rounding unit ends before it starts.
    const [from, to] = [Math.min(start, end), Math.max(start, end)];
    let [low, high] = [0, lane.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      [low, high] = lane[middle]!.begin <= to ? [middle + 1, high] : [low, middle];
    }
    return low > 0 && lane[low - 1]!.end >= from;
  };
}

/** Most hits in the list. */
export const MAX_LISTED = 60;
/** Buckets per visible window. */
const WINDOW_BUCKETS = 1500;

/** Search all traces from `at`, which is null while the start of the selected slice is unknown. */
export function useSearch(
  payload: TracePayload,
  traces: readonly SearchedTrace[],
  { find: query, regex, event }: TraceState,
  at: number | null,
  shown: Span,
) {
  const [track, setTrack] = useState(-1);
  const wanted = { query, regex: String(regex), python: String(payload.python) };
  const stand = { at: at ?? shown.begin, event: event ?? -1, track };
  const answers = useViewOfEach<TraceSearch>(
    'trace/search',
    traces.map(({ selectors }, index) => {
      const from = positionInTrace(stand, index, traces);
      const place = { at: String(from.at), event: String(from.event), track: String(from.track) };
      return [selectors, { ...wanted, ...place, limit: String(MAX_LISTED) }];
    }),
    query !== '',
  );
  const hits = ({ begin, end }: Span, width: number): Parameters<typeof useViewOfEach>[1] =>
    traces.map(({ selectors, shift }) => [
      selectors,
      { ...wanted, ...rangeParams(begin - shift, end - shift), width: String(width) },
    ]);
  // Panning shows what is beside the window before new answers arrive.
  const around = shown.end - shown.begin;
  const near = useViewOfEach<TraceHits>(
    'trace/hits',
    hits({ begin: shown.begin - around, end: shown.end + around }, 3 * WINDOW_BUCKETS),
    query !== '',
  );
  const all = useViewOfEach<TraceHits>(
    'trace/hits',
    hits({ begin: payload.begin_ns, end: payload.end_ns }, MAP_BUCKETS),
    query !== '',
  );
  // Earlier answers stay until the new ones arrive, but an empty field has none.
  const unlessEmpty = <T>(payloads: T | undefined): T | undefined => (query === '' ? undefined : payloads);
  const places = unlessEmpty(near.payloads);
  const highlight = useMemo(
    () => (places ? highlightHits(hitRanges(places, traces)) : null),
    [places, traces],
  );
  const everywhere = unlessEmpty(all.payloads);
  const ticks = useMemo(() => (everywhere ? hitRanges(everywhere, traces) : []), [everywhere, traces]);
  const rows = unlessEmpty(answers.payloads);
  const matches = rows && mergeMatches(rows, traces, stand, MAX_LISTED);
  return {
    matches,
    /** Whether the matches belong to the current query and position. */
    fresh: matches !== undefined && !answers.placeholder && at !== null,
    error: answers.error,
    track,
    setTrack,
    highlight,
    ticks,
  };
}

export type SearchState = ReturnType<typeof useSearch>;
