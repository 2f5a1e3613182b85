import { useEffect, useRef } from 'react';
import type { TraceFlows } from '../../../api/types';

type Direction = 'previous' | 'next';

/** Goes back and ahead along a flow. A key pressed before the links of the selection are here is obeyed when they are. */
export function useFollow(
  flows: TraceFlows | undefined,
  event: number | null,
  choose: (event: number | null) => void,
): (direction: Direction) => void {
  const wish = useRef<{ event: number | null; direction: Direction } | null>(null);
  useEffect(() => {
    if (!flows || !wish.current) {
      return;
    }
    const { event: from, direction } = wish.current;
    wish.current = null;
    const next = flows.event === from ? flows[direction][0] : undefined;
    if (next !== undefined) {
      choose(next);
    }
  }, [flows, choose]);
  return direction => {
    wish.current = flows ? null : { event, direction };
    if (flows) {
      choose(flows[direction][0] ?? event);
    }
  };
}
