// The tiles of one trace.
import type { Client } from '../../api/client';
import type { Selectors } from '../../api/types';
import type { Source } from '../../timeline/contract';
import type { ColorBy } from '../../timeline/draw/colors';
import { askNames } from '../../timeline/tiles/answer';
import { reader } from '../../timeline/tiles/reader';
import { range } from './answers';

export function traceSource(client: Client, selectors: Selectors, python: boolean, color: ColorBy): Source {
  const frames: Record<string, string> = python ? { python: 'true' } : {};
  return {
    tile: (begin, end, width, signal) =>
      reader.tile(
        client,
        selectors,
        { ...range(begin, end), width: String(width), color, ...frames },
        signal,
      ),
    counters: (begin, end, width, signal) =>
      reader.counters(client, selectors, { ...range(begin, end), width: String(width) }, signal),
    blame: (begin, end, width, signal) =>
      reader.blame(client, selectors, { ...range(begin, end), width: String(width) }, signal),
    names: codes => askNames(client, selectors, codes),
  };
}
