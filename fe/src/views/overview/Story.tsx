import { useLayoutEffect, useRef, useState, type ReactNode } from 'react';
import css from './Story.module.css';

interface Props {
  /** Some of it is still to come: what it is drawn with meanwhile keeps its room. */
  coming: boolean;
  children: ReactNode;
}

/**
 * The verdict and what to do. Once it was drawn before all was known, it keeps the room that it had, so that nothing
 * below it moves while it is read; what needs more takes more, as nothing may be hidden. Another width lets go of it.
 */
export function Story({ coming, children }: Props) {
  const ref = useRef<HTMLDivElement>(null);
  const [kept, setKept] = useState<{ height: number; width: number }>();
  useLayoutEffect(() => {
    const node = ref.current;
    if (!coming || !node) {
      return undefined;
    }
    // Once all is laid out: the row of cards first learns how many have room.
    const observer = new ResizeObserver(() => {
      observer.disconnect();
      setKept({ height: node.offsetHeight, width: node.offsetWidth });
    });
    observer.observe(node);
    return () => observer.disconnect();
  }, [coming]);
  useLayoutEffect(() => {
    const node = ref.current;
    if (!kept || !node) {
      return undefined;
    }
    const observer = new ResizeObserver(() => node.offsetWidth !== kept.width && setKept(undefined));
    observer.observe(node);
    return () => observer.disconnect();
  }, [kept]);
  return (
    <div
      ref={ref}
      data-part="story"
      className={`${css.story} ${kept ? css.kept : ''}`}
      style={{ minHeight: kept?.height }}
    >
      {children}
    </div>
  );
}
