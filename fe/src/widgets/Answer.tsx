import type { ReactNode } from 'react';

/** The head of a view: where we are, the answer in one sentence, one line of why. */
export function Answer({ crumb, children, why }: { crumb: string; children: ReactNode; why?: ReactNode }) {
  return (
    <div className="answer">
      <p className="crumb">{crumb}</p>
      <h1>{children}</h1>
      {why && <p className="why">{why}</p>}
    </div>
  );
}

export function Mark({ color, children }: { color: string; children: ReactNode }) {
  return (
    <span className="mark" style={{ borderColor: color }}>
      {children}
    </span>
  );
}
