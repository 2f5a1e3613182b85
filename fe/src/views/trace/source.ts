// Where a timeline's tiles come from: one trace, or several ranks merged on the clock of the job.
import type { Client } from '../../api/client';
import type { Selectors } from '../../api/types';
import type { TileNames, TileSource } from '../../timeline/contract';
import type { ColorBy } from '../../timeline/draw/colors';
import { fetchNames } from '../../timeline/tiles/fetch';
import {
  unchangedColors,
  type TraceMember,
  memberOf,
  mergedId,
  mergeSamples,
  mergeTiles,
  type MergedColors,
} from '../../timeline/tiles/merge';
import { reader } from '../../timeline/tiles/reader';
import { rangeParams } from './answers';

export function traceSource(
  client: Client,
  selectors: Selectors,
  python: boolean,
  color: ColorBy,
): TileSource {
  const frames: Record<string, string> = python ? { python: 'true' } : {};
  return {
    tile: (begin, end, width, signal) =>
      reader.tile(
        client,
        selectors,
        { ...rangeParams(begin, end), width: String(width), color, ...frames },
        signal,
      ),
    counters: (begin, end, width, signal) =>
      reader.counters(client, selectors, { ...rangeParams(begin, end), width: String(width) }, signal),
    blame: (begin, end, width, signal) =>
      reader.blame(client, selectors, { ...rangeParams(begin, end), width: String(width) }, signal),
    names: codes => fetchNames(client, selectors, codes),
  };
}

/** A rank whose clock is aligned with the others. */
export type AlignedRank = TraceMember & { worker: string; span: string };

/** Return the tiles of several ranks as one; `by` colors them, and `recolored` maps each rank's colors to common ones. */
export function ranksSource(
  client: Client,
  run: string,
  members: readonly AlignedRank[],
  python: boolean,
  by: ColorBy,
  recolored: MergedColors | undefined,
): TileSource {
  const count = members.length;
  const frames: Record<string, string> = python ? { python: 'true' } : {};
  const one = (index: number) => ({ run, worker: members[index]!.worker, span: members[index]!.span });
  const within = (begin: number, end: number, width: number, shift: number) => ({
    begin: String(Math.floor(begin - shift)),
    end: String(Math.max(Math.ceil(end - shift), Math.floor(begin - shift) + 1)),
    width: String(width),
  });
  return {
    tile: async (begin, end, width, signal) =>
      mergeTiles(
        await Promise.all(
          members.map(({ shift }, i) =>
            reader.tile(
              client,
              one(i),
              { ...within(begin, end, width, shift), color: by, ...frames },
              signal,
            ),
          ),
        ),
        members,
        begin,
        end,
        recolored,
      ),
    counters: async (begin, end, width, signal) =>
      mergeSamples(
        await Promise.all(
          members.map(({ shift }, i) =>
            reader.counters(client, one(i), within(begin, end, width, shift), signal),
          ),
        ),
        members,
        begin,
        end,
      ),
    blame: async (begin, end, width, signal) =>
      mergeTiles(
        await Promise.all(
          members.map(({ shift }, i) =>
            reader.blame(client, one(i), within(begin, end, width, shift), signal),
          ),
        ),
        members,
        begin,
        end,
        unchangedColors(members),
      ),
    names: async codes => {
      const found: TileNames = { names: {}, short_names: {} };
      await Promise.all(
        members.map(async (_, index) => {
          const ownCodes = codes.filter(code => memberOf(code, count).index === index);
          if (ownCodes.length > 0) {
            const wanted = ownCodes.map(code => memberOf(code, count).id);
            const answer = await fetchNames(client, one(index), wanted);
            for (const kind of ['names', 'short_names'] as const) {
              for (const [code, text] of Object.entries(answer[kind])) {
                found[kind][String(mergedId(Number(code), index, count))] = text;
              }
            }
          }
        }),
      );
      return found;
    },
  };
}
