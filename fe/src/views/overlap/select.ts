import type { OverlapPayload } from '../../api/types';
import { parseLink } from '../../widgets/Sentence';

/** Lead iterations to a trace of the same process where a run has one; a report may lack that run. */
export function preferTraces(payload: OverlapPayload, runs: readonly string[]): OverlapPayload {
  const choose = (link: string | null, traced: string | null | undefined) =>
    traced && runs.includes(parseLink(traced).run ?? '') ? traced : link;
  return {
    ...payload,
    links: payload.links.map((row, i) => row.map((link, j) => choose(link, payload.traced_links[i]?.[j]))),
    ranks: payload.ranks.map(each => ({ ...each, link: choose(each.link, each.traced_link) })),
  };
}
