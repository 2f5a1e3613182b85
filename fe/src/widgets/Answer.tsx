import type { ReactNode } from 'react';
import css from './Answer.module.css';

/** The head of a view: the trace and view shown, the finding as a headline, and one line of evidence. */
export function Answer({ crumb, children, why }: { crumb: ReactNode; children: ReactNode; why?: ReactNode }) {
  return (
    <div className={css.answer} data-part="answer">
      <p className={css.crumb} data-part="crumb">
        {crumb}
      </p>
      <h1>{children}</h1>
      {why && (
        <p className={css.why} data-part="why">
          {why}
        </p>
      )}
    </div>
  );
}
