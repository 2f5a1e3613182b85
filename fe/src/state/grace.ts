import { useEffect, useState } from 'react';

/** Return whether something still `pending` may be waited for: for `ms` from when `of` was opened. */
export function useGrace(pending: boolean, of: string, ms: number): boolean {
  const [over, setOver] = useState<string>();
  useEffect(() => {
    const timer = setTimeout(() => setOver(of), ms);
    return () => clearTimeout(timer);
  }, [of, ms]);
  return pending && over !== of;
}
