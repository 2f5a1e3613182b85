import { useElementSize } from '@mantine/hooks';

/** The width of an element in whole pixels, for drawings that fill it; 0 until it is known. */
export function useWidth<T extends HTMLElement = HTMLDivElement>() {
  const { ref, width } = useElementSize<T>();
  return { ref, width: Math.floor(width) };
}
