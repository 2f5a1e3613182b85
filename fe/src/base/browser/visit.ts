/** What the page remembers until it is closed, by name: states and scroll positions of views, settings. */
export const visit = new Map<string, unknown>();
