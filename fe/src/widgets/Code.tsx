import { CopyButton } from './inputs/CopyButton';
import css from './Code.module.css';

export function Code({ children }: { children: string }) {
  return (
    <div className={css.code}>
      <pre>{children}</pre>
      <CopyButton text={() => children} label="Copy the code" />
    </div>
  );
}
