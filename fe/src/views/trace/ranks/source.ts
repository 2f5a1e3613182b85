// The tiles of several ranks as those of one trace, on the clock of the job.
import type { Client } from '../../../api/client';
import type { Names, Source } from '../../../timeline/contract';
import type { ColorBy } from '../../../timeline/draw/colors';
import { askNames } from '../../../timeline/tiles/answer';
import {
  asTheyAre,
  memberOf,
  mergedId,
  mergeSamples,
  mergeTiles,
  type Member,
  type Recolored,
} from '../../../timeline/tiles/merge';
import { reader } from '../../../timeline/tiles/reader';

export type Aligned = Member & { worker: string; span: string };

/** `recolored`: what the colors of a tile stand for on each rank, and `by` what they are asked for. */
export function ranksSource(
  client: Client,
  run: string,
  members: readonly Aligned[],
  python: boolean,
  by: ColorBy,
  recolored: Recolored | undefined,
): Source {
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
        asTheyAre(members),
      ),
    names: async codes => {
      const found: Names = { names: {}, short_names: {} };
      await Promise.all(
        members.map(async (_, index) => {
          const mine = codes.filter(code => memberOf(code, count).index === index);
          if (mine.length > 0) {
            const wanted = mine.map(code => memberOf(code, count).id);
            const asked = await askNames(client, one(index), wanted);
            for (const kind of ['names', 'short_names'] as const) {
              for (const [code, text] of Object.entries(asked[kind])) {
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
