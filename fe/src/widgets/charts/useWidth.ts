import { useElementSize } from '@mantine/hooks';

/** Return a ref and the width of its element in whole pixels, 0 until it has been measured. */
export function useWidth<T extends HTMLElement = HTMLDivElement>() {
  const { ref, width } = useElementSize<T>();
  return { ref, width: Math.floor(width) };
}
