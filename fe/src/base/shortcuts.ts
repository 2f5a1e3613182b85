// The keys that the page takes, as its sheet lists them.
export type Shortcut = readonly [key: string, text: string];

export const PAGE_KEYS: readonly Shortcut[] = [
  ['r', 'Choose a run'],
  ['w', 'Choose a worker; on the timeline, zoom in'],
  ['h', 'Trace health'],
  ['t', 'Theme: as host, light, dark'],
  ['← →', 'Previous, next step in the chart'],
  ['Enter', 'Show the focused step alone, or the average again'],
  ['Esc', 'Close'],
  ['?', 'This sheet'],
];

export const TIMELINE_KEYS: readonly Shortcut[] = [
  ['W / S', 'Zoom in / out'],
  ['A / D', 'Earlier / later'],
  ['F, double click', 'Zoom to the selection, else show all'],
  ['Backspace', 'Back to the window before'],
  ['M', 'Mark the selected slice, or clear the marks'],
  ['P', 'Unfold or fold the Python frames'],
  ['Enter', 'On the drawing: select a slice in sight'],
  ['← →', 'The slice before / after on its track, else earlier / later'],
  ['↑ ↓', 'The slice around / inside, else on the track above / below'],
  ['E', 'Add up what is in sight'],
  ['C', 'Light the critical path, or nothing'],
  ['[ ]', 'Back / ahead along the lit path, else along the flow'],
  ['/', 'Find; Enter and Shift+Enter step through the hits'],
  ['Esc', 'Clear the selection'],
  ['drag', 'Select a window of time'],
  ['wheel', 'Scroll the tracks'],
  ['Ctrl + wheel, ⌘ + wheel, pinch', 'Zoom at the pointer'],
  ['Shift + drag, Shift + wheel', 'Pan'],
];
