// What the search of a timeline finds: how many, which is next, what to light in the window and in the strip.
import { useMemo, useState } from 'react';
import type { TraceHits, TracePayload, TraceSearch } from '../../../api/types';
import { useViewOfEach } from '../../../state/queries';
import type { Span } from '../../../timeline/tiles/store';
import { MAP_WIDTH, range } from '../answers';
import type { TraceState } from '../state';
import { litBy, mergeFound, placesOf, standIn, type Searched } from './merge';

export const LISTED = 60;
/** Buckets of a window. */
const WINDOW = 1500;

/** `at` is where the reader is; null while the start of the selected slice is not known yet. */
export function useFound(
  payload: TracePayload,
  traces: readonly Searched[],
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
      const from = standIn(stand, index, traces);
      const place = { at: String(from.at), event: String(from.event), track: String(from.track) };
      return [selectors, { ...wanted, ...place, limit: String(LISTED) }];
    }),
    query !== '',
  );
  const hits = ({ begin, end }: Span, width: number): Parameters<typeof useViewOfEach>[1] =>
    traces.map(({ selectors, shift }) => [
      selectors,
      { ...wanted, ...range(begin - shift, end - shift), width: String(width) },
    ]);
  // What lies beside the window comes into sight before it rests.
  const around = shown.end - shown.begin;
  const near = useViewOfEach<TraceHits>(
    'trace/hits',
    hits({ begin: shown.begin - around, end: shown.end + around }, 3 * WINDOW),
    query !== '',
  );
  const all = useViewOfEach<TraceHits>(
    'trace/hits',
    hits({ begin: payload.begin_ns, end: payload.end_ns }, MAP_WIDTH),
    query !== '',
  );
  // Answers to what was asked before stay until those of now are here, but nothing is asked of an empty field.
  const asked = <T>(payloads: T | undefined): T | undefined => (query === '' ? undefined : payloads);
  const places = asked(near.payloads);
  const lit = useMemo(() => (places ? litBy(placesOf(places, traces)) : null), [places, traces]);
  const everywhere = asked(all.payloads);
  const ticks = useMemo(() => (everywhere ? placesOf(everywhere, traces) : []), [everywhere, traces]);
  const rows = asked(answers.payloads);
  const matches = rows && mergeFound(rows, traces, stand, LISTED);
  return {
    matches,
    /** Whether the matches are those of what is asked now. */
    fresh: matches !== undefined && !answers.placeholder && at !== null,
    error: answers.error,
    track,
    setTrack,
    lit,
    ticks,
  };
}

export type FoundHits = ReturnType<typeof useFound>;
