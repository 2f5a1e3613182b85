import { formatDuration, formatNumber, formatRatio } from '../../base/format';

/** Format a metric: ns and ratios as everywhere, others as numbers with at most four digits and their unit. */
export function formatMetric(value: number | null, unit: string): string {
  if (value === null) {
    return '–';
  }
  if (unit === 'ns') {
    return formatDuration(value);
  }
  if (unit === 'ratio') {
    return formatRatio(value);
  }
  const text = Math.abs(value) < 1000 ? String(Number(value.toPrecision(4))) : formatNumber(value, 4);
  return unit === '%' || unit === '' ? `${text}${unit}` : `${text} ${unit}`;
}
