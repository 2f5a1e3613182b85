import type { ReactNode } from 'react';
import answerCss from './Answer.module.css';
import css from './Opening.module.css';

interface Props {
  /** The view that is being opened, and the trace as far as it is known. */
  title: string | undefined;
  crumb: string | undefined;
  /** What is being done, shown after a moment. */
  children?: ReactNode;
}

/** The frame of a view until its answer arrives: its title, and after a moment a skeleton. */
export function Opening({ title, crumb, children }: Props) {
  return (
    <div className={css.opening} aria-busy="true">
      <div className={answerCss.answer}>
        <p className={answerCss.crumb}>{crumb || '\u00a0'}</p>
        <h1>{title}</h1>
        <p className={answerCss.why} />
      </div>
      {children && <div className={css.appearing}>{children}</div>}
      <div className={`skeleton panel ${css.appearing}`} style={{ height: 152 }} />
      <div className={`${css.columns} ${css.appearing}`}>
        <div className="skeleton panel" style={{ height: 290 }} />
        <div className="skeleton panel" style={{ height: 290 }} />
      </div>
    </div>
  );
}
