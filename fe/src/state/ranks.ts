/** Workers whose timelines are shown as one, in the address; names may hold anything. */
export const readRanks = (params: Record<string, string>): string[] =>
  (params.ranks ?? '').split(',').filter(Boolean).map(decodeURIComponent);

export const writeRanks = (workers: readonly string[]): string => workers.map(encodeURIComponent).join(',');
