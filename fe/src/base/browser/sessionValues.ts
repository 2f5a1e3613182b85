/** Values that the page keeps until it is closed, by name: states and scroll positions of views, settings. */
export const sessionValues = new Map<string, unknown>();
