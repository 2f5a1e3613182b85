// The tooltip of the slice under the pointer.
import { useEffect, useState } from 'react';
import { causeTitle } from '../../../base/causes';
import { exactDuration, formatDuration, formatRatio, plural } from '../../../base/format';
import { formatOffset } from '../../../base/ticks';
import type { Blame, TileSource } from '../../../timeline/contract';
import type { Hit } from '../../../timeline/draw/scene';
import css from './Canvas.module.css';

export interface Pointed {
  hit: Hit;
  blame: Blame | null;
  x: number;
  y: number;
}

interface PointerProps {
  pointed: Pointed;
  name: string | undefined;
  fullName: string | undefined;
  code: number;
  source: TileSource;
  width: number;
}

/** The tooltip; a name that no label has needed yet is fetched. */
export function Pointer({ pointed, name, fullName, code, source, width }: PointerProps) {
  const [fetched, setFetched] = useState<{ code: number; text: string; fullName: string } | null>(null);
  useEffect(() => {
    if (name !== undefined || code < 0) {
      return;
    }
    let current = true;
    source.names([code]).then(
      found => {
        const fullName = found.names[String(code)] ?? '';
        if (current) {
          setFetched({ code, text: found.short_names[String(code)] ?? fullName, fullName });
        }
      },
      () => undefined, // the page already shows that the server is not responding
    );
    return () => {
      current = false;
    };
  }, [name, code, source]);
  const { hit } = pointed;
  const text = name ?? (fetched?.code === code ? fetched.text : code < 0 ? '(no name)' : '…');
  const full = fullName ?? (fetched?.code === code ? fetched.fullName : text);
  const flip = pointed.x > width - 320;
  return (
    <div
      className={css.tip}
      data-part="event-tip"
      style={{
        left: flip ? undefined : pointed.x + 12,
        right: flip ? width - pointed.x + 12 : undefined,
        top: pointed.y + 14,
      }}
    >
      {pointed.blame ? (
        <>
          <strong>{causeTitle(pointed.blame.category)}</strong> {formatDuration(hit.busy)}
          {hit.count > 1 && ` of ${formatDuration(hit.duration)}`}
          {code >= 0 && (
            <>
              <br />
              <span className="dim">
                {hit.count > 1 ? 'longest: ' : ''}
                {text}
              </span>
            </>
          )}
        </>
      ) : hit.count > 1 ? (
        <>
          <strong>{plural(hit.count, 'slice')}</strong> in {formatDuration(hit.duration)}, busy{' '}
          {formatRatio(hit.duration > 0 ? hit.busy / hit.duration : 1)}
          <br />
          <span className="dim">longest: {text}</span>
          {full !== text && <span className={css.whole}>{full}</span>}
        </>
      ) : (
        <>
          <strong>{text}</strong>
          <br />
          <span title={exactDuration(hit.duration)}>{formatDuration(hit.duration)}</span>
          <span className="dim"> from {formatOffset(hit.start, Math.max(hit.duration / 10, 1))}</span>
          {full !== text && <span className={css.whole}>{full}</span>}
        </>
      )}
    </div>
  );
}
