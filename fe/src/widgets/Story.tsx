import { useLayoutEffect, useRef, useState, type ReactNode } from 'react';
import css from './Story.module.css';

interface Props {
  /** Whether some of it is still being computed; until then its height is reserved. */
  coming: boolean;
  children: ReactNode;
}

/**
 * A part of the page that is drawn before everything in it is computed. It keeps the height that it had then, so that
 * nothing below it moves while it is read. It may grow, because nothing may be hidden; a new width resets it.
 */
export function Story({ coming, children }: Props) {
  const ref = useRef<HTMLDivElement>(null);
  const [reserved, setReserved] = useState<{ height: number; width: number }>();
  useLayoutEffect(() => {
    const node = ref.current;
    if (!coming || !node) {
      return undefined;
    }
    // Measured after layout: the row of cards first finds out how many cards fit.
    const observer = new ResizeObserver(() => {
      observer.disconnect();
      setReserved({ height: node.offsetHeight, width: node.offsetWidth });
    });
    observer.observe(node);
    return () => observer.disconnect();
  }, [coming]);
  useLayoutEffect(() => {
    const node = ref.current;
    if (!reserved || !node) {
      return undefined;
    }
    const observer = new ResizeObserver(() => node.offsetWidth !== reserved.width && setReserved(undefined));
    observer.observe(node);
    return () => observer.disconnect();
  }, [reserved]);
  return (
    <div
      ref={ref}
      data-part="story"
      className={`${css.story} ${reserved ? css.reserved : ''}`}
      style={{ minHeight: reserved?.height }}
    >
      {children}
    </div>
  );
}
