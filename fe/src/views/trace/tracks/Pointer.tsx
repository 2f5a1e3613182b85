// What is said of the slice under the pointer.
import { useEffect, useState } from 'react';
import { causeTitle } from '../../../base/causes';
import { exactDuration, formatDuration, formatRatio, plural } from '../../../base/format';
import { formatOffset } from '../../../base/ticks';
import type { Blame, Source } from '../../../timeline/contract';
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
  whole: string | undefined;
  code: number;
  source: Source;
  width: number;
}

/** What is under the pointer. Names that no label needed yet are asked for. */
export function Pointer({ pointed, name, whole, code, source, width }: PointerProps) {
  const [asked, setAsked] = useState<{ code: number; text: string; whole: string } | null>(null);
  useEffect(() => {
    if (name !== undefined || code < 0) {
      return;
    }
    let current = true;
    source.names([code]).then(
      found => {
        const asked = found.names[String(code)] ?? '';
        if (current) {
          setAsked({ code, text: found.short_names[String(code)] ?? asked, whole: asked });
        }
      },
      () => undefined, // the page says elsewhere that the server does not answer
    );
    return () => {
      current = false;
    };
  }, [name, code, source]);
  const { hit } = pointed;
  const text = name ?? (asked?.code === code ? asked.text : code < 0 ? 'no name' : '…');
  const all = whole ?? (asked?.code === code ? asked.whole : text);
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
          {all !== text && <span className={css.whole}>{all}</span>}
        </>
      ) : (
        <>
          <strong>{text}</strong>
          <br />
          <span title={exactDuration(hit.duration)}>{formatDuration(hit.duration)}</span>
          <span className="dim"> from {formatOffset(hit.start, Math.max(hit.duration / 10, 1))}</span>
          {all !== text && <span className={css.whole}>{all}</span>}
        </>
      )}
    </div>
  );
}
