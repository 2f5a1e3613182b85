import { useLayoutEffect, useRef, useState, type ReactNode } from 'react';

interface Props {
  label: string;
  children: ReactNode;
}

/** A part of a panel that is scrolled sideways by itself. It is a stop of the Tab key only while there is more than fits. */
export function ScrollArea({ label, children }: Props) {
  const area = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [scrolls, setScrolls] = useState(false);
  useLayoutEffect(() => {
    const node = area.current!;
    const measure = () => setScrolls(node.scrollWidth > node.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(node);
    observer.observe(content.current!);
    return () => observer.disconnect();
  }, []);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the arrow keys scroll what has the focus
    <div ref={area} className="scroll" role="region" aria-label={label} tabIndex={scrolls ? 0 : undefined}>
      <div ref={content}>{children}</div>
    </div>
  );
}
