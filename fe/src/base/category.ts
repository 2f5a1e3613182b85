// The eight categories of time in order of priority; each has one color everywhere.

export const CATEGORIES = [
  'kernel',
  'memcpy',
  'memset',
  'communication',
  'runtime',
  'dataloader',
  'cpu_exec',
  'other',
] as const;

export type Category = (typeof CATEGORIES)[number];

export const CATEGORY_TITLE: Record<Category, string> = {
  kernel: 'Kernel',
  memcpy: 'Memcpy',
  memset: 'Memset',
  communication: 'Communication',
  runtime: 'Runtime',
  dataloader: 'DataLoader',
  cpu_exec: 'CPU Exec',
  other: 'Other',
};

/** Categories in which a device is busy. */
export const DEVICE_CATEGORIES: readonly Category[] = ['kernel', 'memcpy', 'memset', 'communication'];

export const categoryColor = (category: Category): string => `var(--c-${category})`;
export const categoryInk = (category: Category): string => `var(--ink-${category})`;
