/** Whether an element takes text, so that the keys are its own. */
export const takesText = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches('input:not([type=radio], [type=checkbox]), textarea');
