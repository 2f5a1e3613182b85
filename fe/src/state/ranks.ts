// Workers whose timelines are merged, in the address; their names may contain any character.

export const readRanks = (params: Record<string, string>): string[] =>
  (params.ranks ?? '').split(',').filter(Boolean).map(decodeURIComponent);

export const writeRanks = (workers: readonly string[]): string => workers.map(encodeURIComponent).join(',');
