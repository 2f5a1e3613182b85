const PATHS = {
  logo: 'M9 2 4 9h4l-1 5 5-7H8z',
  serving: 'M2.5 3.5h11v4h-11zM2.5 8.5h11v4h-11zM5 5.5h.1M5 10.5h.1',
  overview: 'M3 13V7h3v6M6.5 13V3h3v10M10 13V9h3v4M2 13h12',
  table: 'M3 4h10M3 8h7M3 12h4',
  warning: 'M8 3 14 13H2zM8 7v2.6M8 11.4v.1',
  info: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 7.4v3.4M8 5.2v.1',
  error: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM6 6l4 4M10 6l-4 4',
  check: 'm3.5 8.5 3 3 6-7',
  clock: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3.2l2 1.3',
  chevron: 'm4.5 6.5 3.5 3.5 3.5-3.5',
  left: 'M9.5 4.5 6 8l3.5 3.5',
  right: 'M6.5 4.5 10 8l-3.5 3.5',
  search: 'M7 3a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM10 10l3.5 3.5',
  link: 'M6.8 9.2 9.2 6.8M7.5 5 9 3.6a2.5 2.5 0 0 1 3.4 3.4L11 8.5M8.5 11 7 12.4A2.5 2.5 0 0 1 3.6 9L5 7.5',
  health: 'M2 8.5h3l1.5-4 3 7.5 1.5-3.5h3',
  keyboard: 'M2 4.5h12v7H2zM4.5 7h.1M7 7h.1M9.5 7h.1M12 7h.1M5 9.5h6',
  theme: 'M12.5 9.5A5 5 0 1 1 6.5 3.5a4 4 0 0 0 6 6z',
  download: 'M8 3v7M5 7.5 8 10.5l3-3M3.5 13h9',
  copy: 'M5.5 5.5h7v7h-7zM3.5 10.5v-7h7',
  columns: 'M3 3.5h10v9H3zM6.3 3.5v9M9.7 3.5v9',
  timeline: 'M2.5 4h6M5.5 8h8M3.5 12h5',
  kernel: 'M5 5h6v6H5zM8 2v3M8 11v3M2 8h3M11 8h3',
  overlap: 'M2.5 4.5h8v3h-8zM5.5 8.5h8v3h-8z',
  roofline: 'M2.5 2.5v11h11M4.5 11 9 5h4.5',
  pin: 'M6 2.5h4l-.6 4 2.1 2.5h-7L6.6 6.5zM8 9v4.5',
  fit: 'M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3',
  external: 'M9 3h4v4M13 3 7.5 8.5M11.5 9.5V13H3V4.5h3.5',
  modules: 'M6 2.5h4v3H6zM2.5 10.5h4v3h-4zM9.5 10.5h4v3h-4zM8 5.5V8M4.5 10.5V8h7v2.5',
  memory: 'M2.5 13h11M3 11.5l3-4 2.5 2 4.5-6',
  distributed:
    'M8 2.5v4M8 6.5 3.5 12M8 6.5l4.5 5.5M8 4.2a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4zM3.5 13.6a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4zM12.5 13.6a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4z',
  diff: 'M5.5 12.5v-9M3 6l2.5-2.5L8 6M10.5 3.5v9M8 10l2.5 2.5L13 10',
  swap: 'M3 5.5h9M9.5 3 12 5.5 9.5 8M13 10.5H4M6.5 8 4 10.5 6.5 13',
  hourglass: 'M4 2.5h8M4 13.5h8M5 2.5c0 3 2 4 3 5.5-1 1.5-3 2.5-3 5.5M11 2.5c0 3-2 4-3 5.5 1 1.5 3 2.5 3 5.5',
  close: 'm4.5 4.5 7 7M11.5 4.5l-7 7',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
