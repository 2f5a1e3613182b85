// Search: how many hits, the next and the previous, and a list of them by track.
import { useEffect, useRef, useState } from 'react';
import type { TracePayload } from '../../../api/types';
import { formatCount, formatDuration } from '../../../base/format';
import { trackName } from '../../../timeline/draw/layout';
import { Sentence } from '../../../widgets/Sentence';
import { Button } from '../../../widgets/inputs/Button';
import { RegexToggle, SearchField } from '../../../widgets/inputs/SearchField';
import type { TimelineState } from '../useTimeline';
import css from './Find.module.css';
import { type SearchState, MAX_LISTED } from './search';

interface Props {
  payload: TracePayload;
  found: SearchState;
  timeline: TimelineState;
}

/** Pause in typing after which the search runs, ms. */
const PAUSE_MS = 200;

type Way = 'previous' | 'next';

export function Find({ payload, found, timeline }: Props) {
  const { find: query, regex, event } = timeline.state;
  const onEvent = timeline.chooseEvent;
  const input = useRef<HTMLInputElement>(null);
  const [draft, setDraft] = useState(query);
  const requested = useRef(query);
  const [open, setOpen] = useState(false);
  /** How many hits ahead (or back) were requested and not reached yet. */
  const steps = useRef(0);
  /** What was selected when the last step was taken, until something else is. */
  const left = useRef<number | null | undefined>(undefined);
  const { track, setTrack, matches, error } = found;
  const ask = (text: string, expression = regex) => {
    requested.current = text;
    timeline.change({ find: text, regex: expression }, true);
  };
  const latest = useRef(ask);
  useEffect(() => {
    latest.current = ask;
  });
  // What the address says (a link, the way back) is what the field says, unless it is the field that wrote it.
  useEffect(() => {
    if (query !== requested.current) {
      requested.current = query;
      setDraft(query);
    }
  }, [query]);
  useEffect(() => {
    const timer = setTimeout(() => draft !== requested.current && latest.current(draft), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  const hit = matches?.rows.findIndex(row => row.event === event) ?? -1;
  const go = (way: Way) => {
    const beside = hit >= 0 ? matches?.rows[hit + (way === 'next' ? 1 : -1)] : undefined;
    // The neighbors in the list are known at once, what lies beyond it is in the answer.
    const target = beside ?? matches?.[way];
    if (!target) {
      steps.current = 0;
    } else if (target.event !== event) {
      left.current = event;
      onEvent(target.event);
    }
  };
  // Each Enter is a step from the hit before it: those that come early wait for the answer, and for that hit.
  const obey = () => {
    if (steps.current !== 0 && found.fresh && draft === query && left.current === undefined) {
      const isNext = steps.current > 0;
      steps.current -= isNext ? 1 : -1;
      go(isNext ? 'next' : 'previous');
    }
  };
  const step = (way: Way) => {
    if (draft === '') {
      return;
    }
    steps.current += way === 'next' ? 1 : -1;
    if (draft !== query) {
      ask(draft);
    } else {
      obey();
    }
  };
  useEffect(() => {
    if (left.current !== event) {
      left.current = undefined;
    }
    obey();
  });
  const tracks = new Map(payload.tracks.map(each => [each.id, each]));
  return (
    <div
      className={css.find}
      data-part="find"
      onBlur={blur => {
        if (!blur.currentTarget.contains(blur.relatedTarget)) {
          setOpen(false);
        }
      }}
    >
      <SearchField
        ref={input}
        data-find
        value={draft}
        placeholder="Find slices and kernels"
        error={error !== null}
        tools={
          <>
            {!draft && <kbd>/</kbd>}
            {matches && (
              <span className="dim" aria-live="polite">
                {hit >= 0 && track < 0 ? `${formatCount(hit + 1)} of ` : ''}
                {formatCount(matches.hits)}
              </span>
            )}
            <RegexToggle pressed={regex} title="Regular expression (RE2)" onToggle={on => ask(draft, on)} />
          </>
        }
        onFocus={focus => {
          focus.target.select();
          setOpen(true);
        }}
        onChange={text => {
          setDraft(text);
          steps.current = 0;
          setTrack(-1);
          setOpen(true);
        }}
        onKeyDown={key => {
          if (key.key === 'Enter') {
            key.preventDefault();
            setOpen(false);
            step(key.shiftKey ? 'previous' : 'next');
          } else if (key.key === 'Escape') {
            key.stopPropagation();
            if (draft === '') {
              input.current?.blur();
            }
            setDraft('');
            ask('');
          }
        }}
      />
      {open && query !== '' && (matches || error) && (
        <div className={css.hits} data-part="find-hits">
          {error && <p className={css.problem}>{error.message}</p>}
          {matches && matches.hits === 0 && (
            <p className="dim">
              <Sentence text={matches.headline} />
            </p>
          )}
          {matches && matches.hits > 0 && (
            <>
              <div className={css.tracks}>
                <Button look="bare" aria-pressed={track < 0} onClick={() => setTrack(-1)}>
                  All {formatCount(matches.hits)}
                </Button>
                {matches.by_track.map(each => (
                  <Button
                    look="bare"
                    key={each.track}
                    aria-pressed={track === each.track}
                    onClick={() => setTrack(each.track)}
                  >
                    {tracks.has(each.track) ? trackName(tracks.get(each.track)!, payload) : each.track}{' '}
                    {formatCount(each.hits)}
                  </Button>
                ))}
              </div>
              <ol>
                {matches.rows.map(row => (
                  <li key={row.event}>
                    <Button look="bare" aria-current={row.event === event} onClick={() => onEvent(row.event)}>
                      <span className="clip" title={row.name}>
                        {row.short_name}
                      </span>
                      <span className="num">
                        {row.duration_ns === null ? '' : formatDuration(row.duration_ns)}
                      </span>
                    </Button>
                  </li>
                ))}
              </ol>
              <p className="dim">
                Enter goes to the next, Shift+Enter to the previous.
                {matches.rows.length < matches.hits && track < 0 && ` The first ${MAX_LISTED} are listed.`}
              </p>
            </>
          )}
        </div>
      )}
    </div>
  );
}
