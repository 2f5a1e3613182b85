import type { ReactNode } from 'react';
import css from './Answer.module.css';

/** The head of a view: the trace and view shown, the finding as a headline, and one line of evidence. */
export function Answer({
  crumb,
  children,
  why,
  reserved = false,
}: {
  crumb: ReactNode;
  children: ReactNode;
  why?: ReactNode;
  /** Keep two lines for the evidence, and two for the finding on a narrow page: both grow while a job is read. */
  reserved?: boolean;
}) {
  return (
    <div className={reserved ? `${css.answer} ${css.reserved}` : css.answer} data-part="answer">
      <p className={css.crumb} data-part="crumb">
        {crumb}
      </p>
      <h1>{children}</h1>
      {(why || reserved) && (
        <p className={css.why} data-part="why">
          {why}
        </p>
      )}
    </div>
  );
}
