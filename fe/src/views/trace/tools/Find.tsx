// Search: how many hits, the next and the previous, and a list of them by track.
import { useEffect, useRef, useState } from 'react';
import type { Selectors, TracePayload, TraceSearch } from '../../../api/types';
import { formatCount, formatDuration } from '../../../base/format';
import { nameOf } from '../../../timeline/draw/layout';
import { useView } from '../../../state/queries';
import { Button } from '../../../widgets/inputs/Button';
import { RegexToggle, SearchField } from '../../../widgets/inputs/SearchField';
import { Sentence } from '../../../widgets/Sentence';
import css from './Find.module.css';

interface Props {
  payload: TracePayload;
  selectors: Selectors;
  python: boolean;
  at: number;
  event: number | null;
  onEvent: (event: number) => void;
}

const PAUSE_MS = 200;
const LISTED = '60';

export function Find({ payload, selectors, python, at, event, onEvent }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const [draft, setDraft] = useState('');
  const [query, setQuery] = useState('');
  const [regex, setRegex] = useState(false);
  const [open, setOpen] = useState(false);
  const [track, setTrack] = useState(-1);
  useEffect(() => {
    const timer = setTimeout(() => setQuery(draft), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  const params = {
    query,
    regex: String(regex),
    at: String(Math.round(at)),
    event: String(event ?? -1),
    track: String(track),
    limit: LISTED,
    python: String(python),
  };
  const answer = useView<TraceSearch>('trace/search', selectors, params, query !== '');
  const matches = query !== '' && answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const hit = matches?.rows.findIndex(row => row.event === event) ?? -1;
  const go = (target: { event: number } | null | undefined) => {
    if (target) {
      onEvent(target.event);
    }
  };
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
        error={answer.error !== null}
        tools={
          <>
            {!draft && <kbd>/</kbd>}
            {matches && (
              <span className="dim" aria-live="polite">
                {hit >= 0 && track < 0 ? `${formatCount(hit + 1)} of ` : ''}
                {formatCount(matches.hits)}
              </span>
            )}
            <RegexToggle pressed={regex} title="Regular expression (RE2)" onToggle={setRegex} />
          </>
        }
        onFocus={focus => {
          focus.target.select();
          setOpen(true);
        }}
        onChange={text => {
          setDraft(text);
          setTrack(-1);
          setOpen(true);
        }}
        onKeyDown={key => {
          if (key.key === 'Enter') {
            key.preventDefault();
            setOpen(false);
            // The neighbors in the list are known at once, what lies beyond it is in the answer.
            go(
              key.shiftKey
                ? (hit >= 0 && matches?.rows[hit - 1]) || matches?.previous
                : (hit >= 0 && matches?.rows[hit + 1]) || matches?.next,
            );
          } else if (key.key === 'Escape') {
            key.stopPropagation();
            if (draft === '') {
              input.current?.blur();
            }
            setDraft('');
            setQuery('');
          }
        }}
      />
      {open && query !== '' && (matches || answer.error) && (
        <div className={css.hits} data-part="find-hits">
          {answer.error && <p className={css.problem}>{answer.error.message}</p>}
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
                    {tracks.has(each.track) ? nameOf(tracks.get(each.track)!, payload) : each.track}{' '}
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
                {matches.rows.length < matches.hits && track < 0 && ` The first ${LISTED} are listed.`}
              </p>
            </>
          )}
        </div>
      )}
    </div>
  );
}
