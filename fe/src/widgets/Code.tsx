import { CopyButton } from './CopyButton';

export function Code({ children }: { children: string }) {
  return (
    <div className="code">
      <pre>{children}</pre>
      <CopyButton text={() => children} label="Copy the code" />
    </div>
  );
}
