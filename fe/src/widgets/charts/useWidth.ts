import { useCallback, useState } from 'react';

/**
 * Return a ref and the width of its element's content in whole pixels, 0 before it is in the page.
 *
 * The first width is measured before the browser paints, so that a chart doesn't push down what stands below it.
 */
export function useWidth<T extends HTMLElement = HTMLDivElement>() {
  const [width, setWidth] = useState(0);
  const ref = useCallback((node: T) => {
    setWidth(contentWidth(node));
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  return { ref, width };
}

function contentWidth(node: HTMLElement): number {
  const { paddingLeft, paddingRight } = getComputedStyle(node);
  return Math.floor(node.clientWidth - (parseFloat(paddingLeft) || 0) - (parseFloat(paddingRight) || 0));
}
