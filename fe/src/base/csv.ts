/** Rows to CSV; cells that a spreadsheet would take for a formula are quoted as text. */
export function toCsv(columns: string[], rows: (string | number | null)[][]): string {
  return [columns, ...rows].map(row => row.map(cell).join(',')).join('\n') + '\n';
}

function cell(value: string | number | null): string {
  if (value === null) {
    return '';
  }
  if (typeof value === 'number') {
    return String(value);
  }
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
