import type { ReactNode } from 'react';
import { formatRatio } from '../base/format';
import css from './HowWeKnow.module.css';

interface Props {
  /** How far the numbers can be trusted, in a few words. */
  confidence?: string | null;
  children: ReactNode;
}

/** Returns how much of the device work the recorded launches and syncs explain, as the confidence of a view. */
export const explainedShare = (share: number | null | undefined): string | null =>
  typeof share === 'number' ? `${formatRatio(share)} of device work explained` : null;

/** The limits of a view's numbers behind a disclosure that is closed at first; it is the last thing on a page. */
export function HowWeKnow({ confidence, children }: Props) {
  return (
    <details
      className={css.how}
      data-part="how-we-know"
      onToggle={event => {
        if (event.currentTarget.open) {
          event.currentTarget.scrollIntoView?.({ block: 'nearest' });
        }
      }}
    >
      <summary>
        How we know
        {confidence && <span className="dim"> · {confidence}</span>}
      </summary>
      {children}
    </details>
  );
}
