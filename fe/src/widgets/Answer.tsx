import type { ReactNode } from 'react';
import css from './Answer.module.css';

/** The head of a view: where we are, the answer in one sentence, one line of why. */
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

export function Mark({ color, children }: { color: string; children: ReactNode }) {
  return (
    <span className={css.mark} style={{ borderColor: color }}>
      {children}
    </span>
  );
}
