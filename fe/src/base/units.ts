// Values of counters, as people read them.
import { formatBytes, formatNumber, formatRatio } from './format';

const SAY: Record<string, (value: number) => string> = {
  ratio: formatRatio,
  bytes: formatBytes,
  'bytes/s': value => `${formatBytes(value)}/s`,
  '/s': value => `${formatNumber(value)}/s`,
};

export const sayOf = (unit: string): ((value: number) => string) => SAY[unit] ?? formatNumber;
