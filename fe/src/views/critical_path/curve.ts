/** Step time with `percent` of a target's time removed, interpolated between the computed percents.
 * The step time is convex in the percent, so interpolation never overstates a saving. */
export function stepAt(
  percents: readonly number[],
  curve: readonly number[],
  percent: number,
): number | null {
  const above = percents.findIndex(each => each >= percent);
  const [low, high] = [percents[above - 1] ?? percents[above], percents[above]];
  const [from, to] = [curve[above - 1] ?? curve[above], curve[above]];
  if (low === undefined || high === undefined || from === undefined || to === undefined) {
    return null;
  }
  return high === low ? to : from + ((to - from) * (percent - low)) / (high - low);
}
